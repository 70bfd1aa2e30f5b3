"""Plugins, compiled once per home and per version of sources and Slurm."""

import hashlib
import logging
import subprocess
from dataclasses import dataclass
from pathlib import Path

from holdfast.localcloud.home import made_once
from holdfast.localcloud.nodes import Mount
from holdfast.localcloud.spank import cannot_compile, compile_plugin, header_version

AT = "/opt/holdfast/job_plugins"
PROGRAMS = "/opt/holdfast/env/bin"
_HERE = Path(__file__).parent
_SOURCES = (_HERE / "auto_resume.c", _HERE / "environment.c")
_HELPERS = (_HERE / "requeue.sh", _HERE / "output_folders.sh")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Plugin:
    mounts: tuple[Mount, ...] = ()
    plugstack: str = ""
    """Its lines of plugstack.conf."""


def prepare(*, home: Path, variables: tuple[str, ...]) -> Plugin:
    """
    Compile the plugins; without a compiler nodes boot without them, with a log line.

    Args:
        home: Of the local cloud.
        variables: Files of the nodes with variables for jobs; the first one with a name wins.
    """
    problems = cannot_compile()
    try:
        place = home / "hyperpod" / "job-plugins" / _digest() if not problems else None
        if place is not None and not place.is_dir():
            compile_into(place)
    except (OSError, subprocess.SubprocessError) as error:
        problems = [str(error)]
    if problems or place is None:
        _log.warning(
            "srun --auto-resume and job variables are not available: %s",
            "; ".join(problems),
        )
        return Plugin()
    return Plugin(
        mounts=(Mount(source=place, target=AT, read_only=True),),
        plugstack=plugstack_lines(Path(AT), variables=variables),
    )


def plugstack_lines(folder: Path, *, variables: tuple[str, ...]) -> str:
    """Return plugstack.conf's lines; "required", since srun would ignore a failed optional plugin's options."""
    resume, environment = (folder / f"holdfast_{source.stem}.so" for source in _SOURCES)
    requeue, folders = (folder / helper.name for helper in _HELPERS)
    return (
        f"required {resume} helper={requeue}\n"
        f"required {environment} files={','.join(variables)} programs={PROGRAMS} folders={folders}\n"
    )


def _digest() -> str:
    digest = hashlib.sha256(header_version().encode())
    for path in (*_SOURCES, *_HELPERS):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def compile_into(place: Path) -> None:
    """Make a folder with the plugins and their helpers; raise OSError."""
    with made_once(place) as fresh:
        for source in _SOURCES:
            compile_plugin([source], target=fresh / f"holdfast_{source.stem}.so")
        for path in _HELPERS:
            helper = fresh / path.name
            helper.write_bytes(path.read_bytes())
            helper.chmod(0o755)
