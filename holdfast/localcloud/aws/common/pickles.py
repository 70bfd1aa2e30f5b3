"""
What is kept of ours between two versions: pickles name the files of classes and functions, and files move.

A file whose classes or functions stand in snapshots gets a row here when it moves. Without it, the first start of the
new version would lose the whole cloud.
"""

import io
import pickle
from typing import Any

FORMER = {
    "holdfast.localcloud.aws._pickling": "holdfast.localcloud.aws.state.pickling",
    "holdfast.localcloud.aws.cloudformation._store": "holdfast.localcloud.aws.cloudformation.deployment.store",
}
"""Names of modules in snapshots of earlier versions, and what they are called today."""


class Unpickler(pickle.Unpickler):
    """Finds classes and functions where they are today."""

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(FORMER.get(module, module), name)


def unpickled(data: bytes) -> Any:
    """An object of this or an earlier version. Only for bytes from a file that nobody else can write."""
    return Unpickler(io.BytesIO(data)).load()
