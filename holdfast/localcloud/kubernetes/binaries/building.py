"""
``holdfast kubernetes build``: the binaries of the current recipe, or of a folder of official ones, in the cache.

An interrupted build resumes at the next call. The finished folder appears atomically and never changes.
"""

import contextlib
import dataclasses
import errno
import functools
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.localcloud.kubernetes.binaries import recipe
from holdfast.localcloud.kubernetes.binaries.collecting import (
    collect,
    official_key,
    official_program,
    official_version,
)
from holdfast.localcloud.kubernetes.binaries.compiling import Tree
from holdfast.localcloud.kubernetes.binaries.errors import BinariesError
from holdfast.localcloud.kubernetes.binaries.finding import RECORD, Binaries, read_binaries, reported_version
from holdfast.localcloud.kubernetes.binaries.packages import check_tools, fetch, fetched_versions, unpack
from holdfast.localcloud.kubernetes.binaries.stepping import (
    Cost,
    Note,
    Report,
    Step,
    go_through,
    only_one,
    silent,
    write_whole,
)

MIN_FREE_GIB = 3.5
"""2.2 GiB are used at most (measured), and the disk may be used by others meanwhile."""
_WORK = ".work-"
_KEPT = "kept"


def build(*, cache: Path, official: Path | None = None, report: Report = silent, keep_work: bool = False) -> Binaries:
    """
    Build binaries that are not in the cache.

    Args:
        official: Folder with the components of another version. Default: compile Kubernetes 1.20.
        keep_work: Default: remove sources and object files after success.

    Raises:
        BinariesError: no network, no space, a missing package, a failed compilation, or another build in progress.
    """
    key = recipe.recipe_key() if official is None else f"from-{official_key(official)}"
    with only_one(cache), _full_disk_reported(cache):
        folder, work = cache / key, cache / f"{_WORK}{key}"
        if not folder.is_dir():
            _remove_others(cache, keep=work)
            _must_have_room(cache)
            version = recipe.VERSION if official is None else official_version(official)
            steps = _steps(cache=cache, work=work, official=official)
            attempt = _count_attempt(work)
            costs = go_through(steps, work=work, report=report)
            with report("collect and check") as note:
                collect(work, official=official)
                _publish(work, folder=folder, version=version, costs=costs, attempts=attempt, official=official)
                note(str(folder))
        if keep_work and work.exists():
            (work / _KEPT).touch()
        else:
            shutil.rmtree(work, ignore_errors=True)
        return read_binaries(folder, named_by="the cache")


def _steps(*, cache: Path, work: Path, official: Path | None) -> list[Step]:
    required = {name: key for name, key in recipe.compiled().items() if official is None or name != recipe.HYPERKUBE}
    elsewhere = {name: path for name, key in required.items() if (path := _compiled_before(cache, name=name, key=key))}
    compiled_here = [name for name in required if name not in elsewhere]
    packages = sorted(
        {package for name, (package, _) in recipe.PROGRAMS.items() if not official_program(official, name)}
    )
    source = recipe.SOURCE_PACKAGE if compiled_here else None
    tree = Tree(work)

    def step(name: str, title: str, run: Callable[[Note], None]) -> Step:
        return Step(name=name, title=title, run=run)

    steps = [
        step(f"take-{name}", f"take {name} of another build", functools.partial(_take, path, tree.built / name))
        for name, path in elsewhere.items()
    ]
    if compiled_here:
        packages += recipe.TOOLS
    if packages:
        check_tools(compiles=bool(compiled_here))
        fetching = functools.partial(_fetch, work, packages, source)
        what = "sources" if compiled_here else "programs"
        steps.append(step(f"fetch-{what}", "fetch Debian's packages", fetching))
        steps.append(step(f"unpack-{what}", "unpack them", lambda note: unpack(work, note=note)))
    if compiled_here:
        steps.append(step("patch", "unpack and patch the sources", tree.unpack))
    if recipe.HYPERKUBE in compiled_here:
        steps.append(step("describe", "generate the OpenAPI definitions", tree.describe))
    compiling = ((name, functools.partial(tree.compile, name)) for name in compiled_here)
    return [*steps, *(step(f"compile-{name}", f"compile {name}", run) for name, run in compiling)]


def _fetch(work: Path, packages: list[str], source: str | None, note: Note) -> None:
    fetch(work, packages=packages, source=source, note=note)


def _take(path: Path, to: Path, _note: Note) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    to.unlink(missing_ok=True)
    os.link(path, to)


def _compiled_before(cache: Path, *, name: str, key: str) -> Path | None:
    """Return the same program from another recipe's folder, so that unchanged programs are not compiled again."""
    for record in cache.glob(f"*/{RECORD}"):
        if json.loads(record.read_text())["compiled"].get(name) == key and (record.parent / name).is_file():
            return record.parent / name
    return None


def _publish(
    work: Path, *, folder: Path, version: str, costs: dict[str, Cost], attempts: int, official: Path | None
) -> None:
    result = work / "result"
    compiled = {name: key for name, key in recipe.compiled().items() if (result / name).exists()}
    record = {
        "version": version,
        "compiled": compiled,
        "packages": fetched_versions(work),
        "from": None if official is None else str(official),
        "steps": {name: dataclasses.asdict(cost) for name, cost in costs.items()},
        "wall_s": round(sum(cost.wall_s for cost in costs.values()), 1),
        "cpu_s": round(sum(cost.cpu_s for cost in costs.values()), 1),
        "cpus": os.cpu_count(),
        "attempts": attempts,
        "built": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    write_whole(result / RECORD, json.dumps(record, indent=2) + "\n")
    (result / RECORD).chmod(0o644)
    made = read_binaries(result, named_by="the build")
    reported = reported_version(made.argv("kube-apiserver"))
    if reported != version:
        raise BinariesError(f"got version {reported} from the built API server; expected {version}")
    result.rename(folder)


def _count_attempt(work: Path) -> int:
    work.mkdir(exist_ok=True)
    count = work / "attempts"
    attempt = int(count.read_text()) + 1 if count.exists() else 1
    write_whole(count, f"{attempt}\n")
    return attempt


def _remove_others(cache: Path, *, keep: Path) -> None:
    for other in cache.glob(f"{_WORK}*"):
        if other != keep and not (other / _KEPT).exists():
            shutil.rmtree(other, ignore_errors=True)


def _must_have_room(cache: Path) -> None:
    free_gib = shutil.disk_usage(cache).free / 2**30
    if free_gib < MIN_FREE_GIB:
        raise BinariesError(
            f"{cache} has {free_gib:.1f} GiB free and a build needs {MIN_FREE_GIB:g} GiB; "
            "free some space, or name another folder with XDG_CACHE_HOME"
        )


@contextlib.contextmanager
def _full_disk_reported(cache: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise BinariesError(
                f"the disk of {cache} is full; free some space and run the command again: it resumes"
            ) from None
        raise
