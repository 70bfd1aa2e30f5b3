"""Slurm's state on the shared file system: moved there once, taken over by number, never used by two."""

import fcntl
import json
import multiprocessing
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scratch_node import ScratchNode
from waiting import eventually

from holdfast_common import parse_events
from holdfast_lifecycle import StepError, controller
from holdfast_lifecycle.controller import LOCK, is_moved, move_accounting
from holdfast_lifecycle.model import AccountingDatabase
from holdfast_lifecycle.node import SharedState, fill_folder, is_open_elsewhere
from holdfast_lifecycle.steps.slurm import state as state_module

RDS = AccountingDatabase(
    endpoint="db.example.rds.amazonaws.com",
    port=3306,
    secret_arn="arn:aws:secretsmanager:us-west-2:123456789012:secret:slurm-AbCdEf",
)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScratchNode]:
    made = ScratchNode(tmp_path, monkeypatch)
    made.write("var/spool/slurmctld/job_state", "jobs")
    made.write("var/spool/slurmctld/hash.1/job.1/script", "#!/bin/sh")
    made.write("var/spool/slurmctld/half.new", "unfinished")
    made.write("var/lib/mysql/ibdata1", "data")
    made.program("sacctmgr", "#!/bin/sh\necho local\n")
    made.program("mariadb", "#!/bin/sh\ncat >/dev/null\n")
    made.program("scontrol")
    (made.root / "var/log").mkdir()
    made.write("opt/slurm/etc/accounting.conf", "AccountingStorageType=accounting_storage/slurmdbd\n")
    yield made
    eventually(lambda: not controller.is_running(made.context.path(LOCK)))


def shared(node: ScratchNode) -> Path:
    return node.root / "fsx/.holdfast/slurm/local"


def kept(node: ScratchNode) -> list[str]:
    """What is beside the lock."""
    return sorted(path.name for path in shared(node).iterdir())


def link(node: ScratchNode, name: str) -> str:
    path = node.root / name
    return path.readlink().name if path.is_symlink() else "no link"


def in_extension(node: ScratchNode) -> ScratchNode:
    node.runs("slurmctld", "slurmdbd", "mariadb")
    return node.has(hook="OnInitComplete")


def replaced(node: ScratchNode) -> ScratchNode:
    """Another instance with the same shared file system, and a fresh disk."""
    for name in ("var/spool/slurmctld", "var/lib/mysql"):
        (node.root / name).unlink()
        (node.root / name).mkdir()
        node.write(f"{name}/fresh", "")
    (node.root / "var/lib/holdfast/moved-accounting.json").unlink(missing_ok=True)
    return node.has(instance_id="i-9")


def test_in_extension_mode_slurmctld_goes_on_while_its_state_is_moved(node: ScratchNode) -> None:
    result = in_extension(node).step("slurm_state")
    assert (result.outcome, "state-1" in result.remark) == ("done", True)
    assert link(node, "var/spool/slurmctld") == "state-1"
    assert node.read("var/spool/slurmctld/job_state") == "jobs"
    assert node.read("var/spool/slurmctld/hash.1/job.1/script") == "#!/bin/sh"
    assert "systemctl stop slurmctld" not in node.calls()
    assert (shared(node) / "state-1").stat().st_mode & 0o777 == 0o700
    assert json.loads((shared(node) / "owner.json").read_text()) == {"number": 1, "instance_id": "i-0"}


def test_job_numbers_have_the_name_of_their_series_as_long_as_they_go_on(node: ScratchNode) -> None:
    in_extension(node).step("slurm_state")
    eventually(lambda: is_moved(node.context))
    first = (shared(node) / "series").read_text()
    assert (shared(node) / "series").stat().st_mode & 0o777 == 0o644
    replaced(in_extension(node)).step("slurm_state")
    assert (shared(node) / "series").read_text() == first


def test_job_numbers_that_begin_again_have_another_name(node: ScratchNode) -> None:
    in_extension(node).step("slurm_state")
    eventually(lambda: is_moved(node.context))
    first = (shared(node) / "series").read_text()
    shutil.rmtree(shared(node) / "state-1")
    replaced(in_extension(node)).step("slurm_state")
    assert (shared(node) / "series").read_text() != first


def test_at_a_boot_the_daemons_wait_for_the_file_system(node: ScratchNode) -> None:
    in_extension(node).step("slurm_state")
    for unit in ("slurmctld", "mariadb"):
        added = node.read(f"etc/systemd/system/{unit}.service.d/holdfast.conf").splitlines()
        assert {"RequiresMountsFor=/fsx", "Restart=on-failure"} < set(added)


def test_a_save_that_was_under_way_during_the_move_is_done_again(node: ScratchNode) -> None:
    in_extension(node).step("slurm_state")
    assert "scontrol reconfigure" in node.calls()
    assert not (shared(node) / "state-1/half.new").exists()


def test_the_move_never_puts_older_state_over_newer(tmp_path: Path) -> None:
    for folder, content in (("old", "older"), ("new", "newer")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "job_state").write_text(content)
    (tmp_path / "old/node_state").write_text("nodes")
    owner = (tmp_path.stat().st_uid, tmp_path.stat().st_gid)
    fill_folder(tmp_path / "old", tmp_path / "new", owner=owner)
    assert (tmp_path / "new/job_state").read_text() == "newer"
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["job_state", "node_state"]


def test_accounting_data_is_moved_in_the_background_and_the_daemons_run_again(node: ScratchNode) -> None:
    in_extension(node).step("slurm_state")
    eventually(lambda: is_moved(node.context))
    assert link(node, "var/lib/mysql") == "accounting-1"
    assert node.read("var/lib/mysql/ibdata1") == "data"
    assert node.running() == {"slurmctld", "slurmdbd", "mariadb"}
    calls = [call for call in node.calls("systemctl") if "is-active" not in call and "daemon-reload" not in call]
    assert calls == [
        "systemctl stop slurmdbd",
        "systemctl stop mariadb",
        "systemctl enable --now mariadb",
        "systemctl enable --now slurmdbd",
    ]
    (event,) = parse_events(node.read("var/log/events.jsonl").splitlines()).events
    assert (event.detail["outcome"], event.kind) == ("moved", "step_finished")
    assert node.step("slurm_state").outcome == "satisfied"


def test_a_controller_without_accounting_is_told_once(node: ScratchNode) -> None:
    node.program("sacctmgr", "#!/bin/sh\nexit 1\n")
    move_accounting(in_extension(node).context, hyperpod_s=0.05)
    (event,) = parse_events(node.read("var/log/events.jsonl").splitlines()).events
    assert (event.detail["outcome"], event.evidence[:22]) == ("nothing", "no slurmdbd answered w")
    assert link(node, "var/lib/mysql") == "no link"


def test_a_move_that_fails_leaves_the_database_running_where_it_was(
    node: ScratchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    in_extension(node)
    state = SharedState.of(node.context)
    state.prepare()
    state.take("i-0")
    monkeypatch.setattr("holdfast_lifecycle.controller.moving.copy_folder", full)
    move_accounting(node.context)
    (event,) = parse_events(node.read("var/log/events.jsonl").splitlines()).events
    assert (event.kind, "No space left" in event.evidence) == ("step_failed", True)
    assert (link(node, "var/lib/mysql"), node.running()) == ("no link", {"slurmctld", "slurmdbd", "mariadb"})
    assert not is_moved(node.context)


def test_a_controller_that_has_been_replaced_moves_nothing_any_more(node: ScratchNode) -> None:
    in_extension(node)
    state = SharedState.of(node.context)
    state.prepare()
    state.take("i-9")
    move_accounting(node.context)
    (event,) = parse_events(node.read("var/log/events.jsonl").splitlines()).events
    assert event.evidence == "the owner is i-9"
    assert "systemctl stop mariadb" not in node.calls()


@pytest.mark.parametrize("hook", ["OnCreate", "OnInitComplete"])
def test_a_replaced_controller_takes_over_what_is_there(
    node: ScratchNode, hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "_HYPERPOD_S", 0.05)
    node.step("slurm_state")
    replaced(node).runs("slurmctld", "slurmdbd", "mariadb")
    node.forget()

    assert node.has(hook=hook).step("slurm_state").outcome == "done"

    assert kept(node) == ["accounting-2", "lock", "owner.json", "series", "state-2"]
    assert node.read("var/spool/slurmctld/job_state") == "jobs"
    assert node.read("var/lib/mysql/ibdata1") == "data"
    assert (node.root / "var/lib/mysql.on-this-node-2/fresh").exists(), "what was on the disk stays"
    assert node.running() == set(), "the steps that follow start them"
    assert node.step("slurm_state").outcome == "satisfied"


def test_what_an_earlier_controller_had_half_saved_is_removed(node: ScratchNode) -> None:
    node.step("slurm_state")
    (shared(node) / "state-1/job_state.new").write_text("half")
    replaced(node).step("slurm_state")
    assert not (shared(node) / "state-2/job_state.new").exists()


def test_in_custom_mode_everything_is_in_place_before_anything_runs(node: ScratchNode) -> None:
    node.runs("mariadb")
    assert node.step("slurm_state").outcome == "done"
    assert (link(node, "var/spool/slurmctld"), link(node, "var/lib/mysql")) == ("state-1", "accounting-1")
    assert node.running() == set()


@pytest.mark.parametrize("after", ["owner", "state", "accounting"])
def test_a_take_over_that_was_interrupted_goes_on(node: ScratchNode, after: str) -> None:
    node.step("slurm_state")
    replaced(node)
    (shared(node) / "owner.json").write_text('{"number": 2, "instance_id": "i-9"}')
    if after != "owner":
        (shared(node) / "state-1").rename(shared(node) / "state-2")
    if after == "accounting":
        (shared(node) / "accounting-1").rename(shared(node) / "accounting-2")
    assert node.step("slurm_state").outcome == "done"
    assert kept(node) == ["accounting-2", "lock", "owner.json", "series", "state-2"]


def test_with_a_database_outside_only_slurmctlds_state_is_kept(node: ScratchNode) -> None:
    result = in_extension(node).has(accounting=RDS).step("slurm_state")
    assert result.remark.endswith(f"accounting is in {RDS.endpoint}")
    assert (link(node, "var/lib/mysql"), node.running()) == ("no link", {"slurmctld", "slurmdbd", "mariadb"})


def test_without_a_shared_file_system_it_says_what_is_lost(node: ScratchNode) -> None:
    result = in_extension(node).has(fsx_mount_path="").step("slurm_state")
    assert (result.outcome, "end with this instance" in result.remark) == ("satisfied", True)


def _hold(path: str, held: Any, end: Any) -> None:
    with Path(path).open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        held.set()
        end.wait()


@pytest.fixture
def another_mariadb(node: ScratchNode) -> Iterator[Callable[[Path], None]]:
    """A process that holds the lock which a server holds."""
    context = multiprocessing.get_context("spawn")
    held, end = context.Event(), context.Event()
    running: list[Any] = []

    def begin(data: Path) -> None:
        process = context.Process(target=_hold, args=(str(data / "ibdata1"), held, end))
        process.start()
        running.append(process)
        assert held.wait(30)

    yield begin
    end.set()
    for process in running:
        process.join(30)


def test_data_that_a_server_has_open_is_not_taken(
    node: ScratchNode, another_mariadb: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "_RELEASE_S", 0.05)
    monkeypatch.setattr(state_module, "_HYPERPOD_S", 0.05)
    node.step("slurm_state")
    another_mariadb(shared(node) / "accounting-1")
    assert is_open_elsewhere(shared(node) / "accounting-1")
    in_extension(replaced(node))

    result = node.step("slurm_state")

    assert (result.outcome, "the controller was i-0" in result.seen) == ("failed", True)
    assert "on_init_complete.sh --only slurm_state" in result.action
    assert kept(node) == ["accounting-1", "lock", "owner.json", "series", "state-1"]
    assert node.running() == {"slurmctld", "slurmdbd", "mariadb"}, "what runs here stays running"


def test_two_controllers_do_not_take_over_at_the_same_time(node: ScratchNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "_LOCK_S", 0.05)
    state = SharedState.of(node.context)
    state.prepare()
    with (state.folder / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert "its lock was held for 0.05 s" in node.step("slurm_state").seen
    assert state.owner() is None


@pytest.mark.parametrize("made", ["a file", "a link"])
def test_a_place_that_somebody_else_made_is_refused(node: ScratchNode, made: str) -> None:
    place = node.root / "fsx/.holdfast"
    if made == "a file":
        place.write_text("")
    else:
        place.symlink_to("/etc")
    result = node.step("slurm_state")
    assert (result.outcome, "it is no directory" in result.seen) == ("failed", True)


@pytest.mark.parametrize("text", ["{", "[]", '{"number": "x"}', '{"number": 1}'])
def test_an_owner_that_cannot_be_read_is_told(node: ScratchNode, text: str) -> None:
    state = SharedState.of(node.context)
    state.prepare()
    (state.folder / "owner.json").write_text(text)
    with pytest.raises(StepError) as refused:
        state.owner()
    assert "write a new one" in refused.value.action


@pytest.mark.parametrize("line", ["", "StateSaveLocation=/var/spool", "StateSaveLocation=/", "StateSaveLocation=x"])
def test_a_state_directory_that_is_not_slurms_own_is_refused(node: ScratchNode, line: str) -> None:
    node.write("opt/slurm/etc/slurm.conf", f"SlurmctldHost=a(10.1.0.4)\n{line}\n")
    result = node.step("slurm_state")
    assert result.expected == "slurm.conf names a directory of its own as StateSaveLocation"
    assert (node.root / "var/spool").is_dir()


def test_locks_that_other_nodes_do_not_see_are_refused(node: ScratchNode) -> None:
    node.write("proc/self/mountinfo", "")
    node.mount("/fsx", "lustre", options="rw,localflock,lazystatfs")
    assert node.step("slurm_state").seen == "it is mounted with localflock"


def test_work_left_running_begins_once_and_ends_with_its_lock(tmp_path: Path) -> None:
    lock, log, go, count = (tmp_path / name for name in ("run/lock", "log", "go", "count"))

    def work() -> None:
        with count.open("a") as file:
            file.write("x")
        print("said")
        while not go.exists():
            time.sleep(0.01)

    controller.leave_running(work, lock=lock, log=log)
    eventually(count.exists)
    controller.leave_running(work, lock=lock, log=log)
    assert controller.is_running(lock)
    go.touch()
    eventually(lambda: not controller.is_running(lock))
    assert count.read_text() == "x"


def test_an_error_of_work_left_running_is_in_its_log(tmp_path: Path) -> None:
    def work() -> None:
        raise ValueError("broken on purpose")

    controller.leave_running(work, lock=tmp_path / "lock", log=tmp_path / "log")
    eventually(lambda: "broken on purpose" in (tmp_path / "log").read_text())
