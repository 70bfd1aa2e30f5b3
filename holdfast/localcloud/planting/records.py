"""Records of active faults, as files beside their node."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

_FOLDER = "planted"


@dataclass(frozen=True, kw_only=True)
class ActiveFault:
    instance_id: str
    host: str
    fault: str
    what: str
    detail: str
    """Details, such as the line or the path."""
    device: str = ""
    """PCI address of the GPU that it is about; empty: of none."""
    since_ns: int
    ends_ns: int | None = None
    """None: with its node, or it was over at once."""
    lasts: bool
    pid: int = 0
    start_ticks: int = 0


def folder(directory: Path) -> Path:
    return directory / _FOLDER


def write(directory: Path, planted: ActiveFault) -> None:
    fresh = path_of(directory, planted.fault).with_suffix(".new")
    fresh.write_text(json.dumps(asdict(planted)))
    fresh.replace(path_of(directory, planted.fault))


def path_of(directory: Path, fault: str) -> Path:
    return folder(directory) / f"{fault}.json"


def read(fleet: Path) -> Iterator[ActiveFault]:
    """Return the records of all nodes of a fleet, orphaned ones included."""
    for path in sorted(fleet.glob(f"*/{_FOLDER}/*.json")):
        with contextlib.suppress(OSError, ValueError, TypeError):  # its node has gone meanwhile
            yield ActiveFault(**json.loads(path.read_text()))
