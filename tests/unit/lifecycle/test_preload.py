"""Preloading: the controller has chosen folders fetched from S3 into Lustre, in the background, once, within bounds."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import eventually

from holdfast_common import kinds, parse_events
from holdfast_lifecycle import Context, load_context, plan
from holdfast_lifecycle.preloading import BATCH_WAIT_S, Progress
from holdfast_lifecycle.preloading import fetch as fetching_fetch
from holdfast_lifecycle.steps import STEPS, preload

LUSTRE = "50 40 0:52 / /fsx rw shared:3 - lustre 10.1.0.9@tcp:/abc rw\n"
STAND_IN = "50 40 8:1 /fsx/fs-1 /fsx rw - ext4 /dev/vda rw\n"


class Lfs:
    """The program lfs over files of which some are in S3 only. Contents arrive a while after they were asked for."""

    def __init__(self, released: set[str], *, arrives_after_s: float = 1.0) -> None:
        self.now = 0.0
        self.released = released
        self.arrivals: dict[str, float] = {}
        self.asked: list[tuple[str, ...]] = []
        self.on_sleep: Callable[[], None] = lambda: None
        self._arrives_after_s = arrives_after_s

    def __call__(self, command: str, *paths: str) -> str:
        if command == "hsm_restore":
            self.asked.append(paths)
            self.arrivals |= dict.fromkeys(paths, self.now + self._arrives_after_s)
            return ""
        self.released -= {path for path, then in self.arrivals.items() if then <= self.now}
        state = "released exists archived"
        lines = [f"{path}: (0x0000000d) {state if path in self.released else 'exists archived'}" for path in paths]
        return "\n".join(f"{line}, archive_id:1" for line in lines)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.on_sleep()


def files(folder: Path, *names: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("x")
    return [str(folder / name) for name in names]


def fetch(folder: Path, lfs: Lfs) -> Progress:
    return fetching_fetch([str(folder)], lfs=lfs, pause_s=60, clock=lfs.clock, sleep=lfs.sleep)


def test_only_files_that_are_in_s3_alone_are_fetched(tmp_path: Path) -> None:
    first, second, _ = files(tmp_path / "data", "a", "b", "c")
    (tmp_path / "data" / "link").symlink_to("a")
    lfs = Lfs({first, second})
    progress = fetch(tmp_path / "data", lfs)

    assert sorted(path for batch in lfs.asked for path in batch) == [first, second]
    assert (progress.files, progress.fetched, progress.late) == (3, 2, 0)


def test_files_whose_names_arrive_later_are_fetched_too(tmp_path: Path) -> None:
    lfs = Lfs(set())

    def arrive() -> None:
        if 60 <= lfs.now < 120:
            lfs.released |= set(files(tmp_path, "late"))

    lfs.on_sleep = arrive
    assert fetch(tmp_path, lfs).fetched == 1


def test_only_so_many_files_are_under_way_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast_lifecycle.preloading.fetching.BATCH_FILES", 2)
    lfs = Lfs(set(files(tmp_path, "a", "b", "c", "d", "e")))
    fetch(tmp_path, lfs)

    assert [len(batch) for batch in lfs.asked] == [2, 2, 1]


def test_a_file_that_never_comes_holds_nothing_up_for_ever(tmp_path: Path) -> None:
    lfs = Lfs(set(files(tmp_path, "a")), arrives_after_s=1e9)
    progress = fetch(tmp_path, lfs)

    assert (progress.files, progress.fetched, progress.late) == (1, 0, 1)
    assert lfs.now < 3 * BATCH_WAIT_S


@pytest.fixture
def context(tmp_path: Path) -> Context:
    for folder in ("proc/self", "fsx/data"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(LUSTRE)
    return Context(
        root=tmp_path,
        bundle=tmp_path,
        cluster_name="demo",
        instance_group="controller",
        instance_id="i-0",
        address="10.1.0.4",
        role="Controller",
        controller_address="10.1.0.4",
        users=(),
        fsx_mount_path="/fsx",
        events_path="/events.jsonl",
        preload=("/fsx/data",),
    )


@pytest.fixture
def lfs_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A program lfs whose files are all released until they were asked for."""

    def write(body: str) -> None:
        program = tmp_path / "bin" / "lfs"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    return write


RESTORE = """
command=$1; shift
for path; do
    mark="$(dirname "$0")/$(basename "$path").here"
    if [ "$command" = hsm_restore ]; then touch "$mark"
    elif [ -e "$mark" ]; then echo "$path: (0x00000009) exists archived, archive_id:1"
    else echo "$path: (0x0000000d) released exists archived, archive_id:1"
    fi
done
"""


def test_the_step_leaves_a_program_running_that_tells_when_all_is_there(
    context: Context, lfs_program: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    lfs_program(RESTORE)
    files(context.root / "fsx/data", "a", "b")
    quick = dataclasses.replace(preload.order(context), pause_s=0.3)
    monkeypatch.setattr(preload, "order", lambda _: quick)

    assert not preload.check(context)
    preload.apply(context)
    assert preload.verify(context) == "being fetched: /fsx/data"
    assert preload.check(context), "a second run does not begin it again"
    eventually(quick.mark.exists)
    eventually(lambda: not quick.is_running())
    parsed = parse_events((context.root / "events.jsonl").read_text().splitlines())
    (event,) = parsed.events
    assert (event.kind, event.node, event.cluster) == (kinds.STEP_FINISHED, "i-0", "demo")
    assert event.evidence.endswith("data: 2 files, 2 of them fetched from S3, 0 still to come")
    assert json.loads(quick.mark.read_text()) == {"files": 2, "fetched": 2, "late": 0}
    assert preload.verify(context) == "fetched: /fsx/data"


def test_a_program_that_fails_is_told_and_costs_no_node(context: Context, lfs_program: Callable[[str], None]) -> None:
    lfs_program("echo 'cannot open' >&2; exit 1")
    files(context.root / "fsx/data", "a")
    preload.apply(context)
    eventually(lambda: not preload.order(context).is_running())

    assert preload.verify(context) == "not fetched: read /var/log/holdfast/preload.log and /events.jsonl"
    (event,) = parse_events((context.root / "events.jsonl").read_text().splitlines()).events
    assert (event.kind, event.evidence) == (kinds.STEP_FAILED, "exit code 1: cannot open")


@pytest.mark.parametrize(("given", "loaded"), [({}, ()), ({"preload": ["/fsx/data"]}, ("/fsx/data",))])
def test_the_folders_come_from_the_bundles_configuration(
    given: dict[str, list[str]], loaded: tuple[str, ...], tmp_path: Path
) -> None:
    settings = {"cluster_name": "demo", "users": [], "fsx_mount_path": "/fsx", "events_path": "/events.jsonl", **given}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    node = {"InstanceId": "i-0", "CustomerIpAddress": "10.1.0.4"}
    groups = {"InstanceGroups": [{"Name": "controller", "Instances": [node]}]}
    (tmp_path / "resources.json").write_text(json.dumps(groups))
    found = load_context(
        config=tmp_path / "config.json", resource_config=tmp_path / "resources.json", addresses={"10.1.0.4"}
    )

    assert found.preload == loaded


def test_a_directory_that_stands_in_for_lustre_has_its_files_already(context: Context) -> None:
    (context.root / "proc/self/mountinfo").write_text(STAND_IN)

    assert preload.check(context)
    assert preload.verify(context) == "/fsx is directory stand-in on ext4: nothing to fetch"


def test_without_folders_there_is_nothing_to_do(context: Context) -> None:
    assert preload.verify(context._replace(preload=())) == "nothing to fetch"


@pytest.mark.parametrize(("role", "does"), [("Controller", True), ("Compute", False), ("Kubernetes", False)])
def test_the_controller_alone_does_it(role: str, does: bool) -> None:
    assert ("preload" in [step.name for step in plan(STEPS, role=role, hook="OnCreate")]) is does
