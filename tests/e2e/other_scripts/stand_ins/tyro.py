"""Stand-in of tyro: ``--name value`` for the fields of a dataclass."""

import sys
from dataclasses import fields
from typing import Any


def cli(kind: Any) -> Any:
    given = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    kinds = {field.name: type(field.default) for field in fields(kind)}
    return kind(
        **{
            name.lstrip("-").replace("-", "_"): kinds[name.lstrip("-").replace("-", "_")](value)
            for name, value in given.items()
        }
    )
