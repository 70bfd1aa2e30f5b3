"""Settings of the monitor of a home: written by ``up``, read at each start."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from holdfast.localcloud.home import write_private

_RECORD = "monitor/settings.json"


@dataclass(frozen=True, kw_only=True)
class MonitorSettings:
    rules: str
    """Content of the file of alert rules."""
    cluster: str
    """Value of the label ``cluster``."""


def settings_of(home: Path) -> MonitorSettings:
    return MonitorSettings(**json.loads((home / _RECORD).read_text()))


def write_settings(home: Path, settings: MonitorSettings) -> None:
    path = home / _RECORD
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_private(path, (json.dumps(asdict(settings), indent=2) + "\n").encode())
