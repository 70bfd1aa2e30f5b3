"""Node configuration for images: files, a folder, two settings of containerd."""

import shlex
from pathlib import Path

from holdfast.localcloud.containers import ImageStore
from holdfast.localcloud.nodes import REACHABLE, FileSpec, Mount

from .node_root import NodeRoot

_AT = "/opt/holdfast/runc"
RUNTIME = f"{_AT}/holdfast-runc"
"""``BinaryName`` of the runtime in containerd's settings, where a node has no other place for it."""
REGISTRIES = "/etc/containerd/certs.d"
"""``config_path`` of the registry in containerd's settings."""
SANDBOX_IMAGE = "localhost/kubernetes/pause"
"""``sandbox_image`` in containerd's settings: AWS's own, for which there is a stand-in."""
IMAGES_AT = "/opt/holdfast/pod-images"

_PROGRAM = Path(__file__).with_name("holdfast-runc")


def node_files(*, registry: str, runc: str, root: NodeRoot) -> dict[str, FileSpec]:
    """Return files of a node by path; ``registry``: HOST:PORT on nodes; ``runc``: the real one."""
    shown = f"{_AT}/node-root.fstab"
    program = _PROGRAM.read_text()
    values = {"@RUNC@": runc, "@IMAGES@": IMAGES_AT, "@SHOWN@": shown, "@FILE_SYSTEMS@": REACHABLE}
    for word, value in values.items():
        program = program.replace(word, shlex.quote(value))
    # As the server too: containerd 1.6 would ask the registry that a name gives after a host, and without any.
    hosts = f'server = "http://{registry}"\n[host."http://{registry}"]\n  capabilities = ["pull", "resolve"]\n'
    return {
        RUNTIME: FileSpec(content=program.encode(), mode=0o755),
        shown: FileSpec(content=root.fstab().encode()),
        f"{REGISTRIES}/_default/hosts.toml": FileSpec(content=hosts.encode()),
    }


def node_mounts(store: ImageStore) -> tuple[Mount, ...]:
    store.create()
    return (Mount(source=store.directory, target=IMAGES_AT, read_only=True),)
