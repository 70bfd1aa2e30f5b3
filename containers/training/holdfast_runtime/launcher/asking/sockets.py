"""Sockets of the launchers of this node: where ``holdfast-run status`` asks when none is named."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_NAME = re.compile(r"holdfast-run-(?P<run>.+)-(?P<node>\d+)\.sock")


@dataclass(frozen=True, kw_only=True)
class Found:
    """One socket."""

    path: Path
    run: str
    node: int


def folders(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Where launchers make them. A job has no XDG_RUNTIME_DIR where the shell that asks has one."""
    named = environment.get("XDG_RUNTIME_DIR")
    return tuple(dict.fromkeys([*([Path(named)] if named else []), Path("/tmp")]))  # noqa: S108


def find_sockets(
    places: Iterable[Path], *, run: str | None = None, node: int | None = None, job: str = ""
) -> list[Found]:
    """
    Sockets by run and node.

    Args:
        run: Of this run alone.
        node: Of this node rank alone.
        job: Of Slurm, whose own come first and, where there are some, alone.
    """
    found = [
        Found(path=path, run=match["run"], node=int(match["node"]))
        for place in places
        for path in sorted(place.glob("holdfast-run-*.sock"))
        if (match := _NAME.fullmatch(path.name))
    ]
    found = [one for one in found if run in (None, one.run) and node in (None, one.node)]
    return [one for one in found if job and one.run == job] or found


def default_job(environment: Mapping[str, str]) -> str:
    """The run of the job that asks."""
    return environment.get("SLURM_ARRAY_JOB_ID") or environment.get("SLURM_JOB_ID") or ""


def searched(environment: Mapping[str, str] = os.environ) -> str:
    """Folders in words."""
    return " or ".join(map(str, folders(environment)))
