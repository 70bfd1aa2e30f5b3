"""The plugin, compiled once per home and per version of its source and of Slurm."""

import hashlib
import logging
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from holdfast.localcloud.nodes import Mount
from holdfast.localcloud.spank import cannot_compile, compile_plugin, header_version

AT = "/opt/holdfast/auto_resume"
_NAME = "holdfast_auto_resume.so"
_HERE = Path(__file__).parent
_SOURCE, _HELPER = _HERE / "auto_resume.c", _HERE / "requeue.sh"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """For each node of a local cloud. Both are empty where it cannot be had."""

    mounts: tuple[Mount, ...] = ()
    plugstack: str = ""
    """Its line of plugstack.conf."""


def prepare(*, home: Path) -> Plugin:
    """Where this machine cannot compile it, nodes go without, and a line in the log says why."""
    problems = cannot_compile()
    try:
        place = home / "hyperpod" / "auto-resume" / _digest() if not problems else None
        if place is not None and not place.is_dir():
            _render(place)
    except (OSError, subprocess.SubprocessError) as error:
        problems = [str(error)]
    if problems or place is None:
        _log.warning("srun --auto-resume is not offered: %s", "; ".join(problems))
        return Plugin()
    return Plugin(
        mounts=(Mount(source=place, target=AT, read_only=True),),
        # "required": an optional plugin that cannot be loaded would leave srun with an option that it does not know.
        plugstack=f"required {AT}/{_NAME} helper={AT}/{_HELPER.name}\n",
    )


def _digest() -> str:
    digest = hashlib.sha256(header_version().encode())
    for path in (_SOURCE, _HELPER):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _render(place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        fresh = Path(folder) / "plugin"
        fresh.mkdir(mode=0o755)
        compile_plugin([_SOURCE], target=fresh / _NAME)
        helper = fresh / _HELPER.name
        helper.write_bytes(_HELPER.read_bytes())
        helper.chmod(0o755)
        try:
            fresh.rename(place)
        except OSError:
            if not place.is_dir():  # another process was faster
                raise
