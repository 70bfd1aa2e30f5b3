"""Nodes that share a machine are tried out a few at a time."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.localcloud.hyperpod.instances import turns_mount
from holdfast_agent.burn_in import IDLE, JOINING, TURNS, Trial, turn
from holdfast_agent.commands import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two turns."""
    for number in range(2):
        (tmp_path / str(number)).touch()
    return tmp_path


def test_a_node_with_a_machine_of_its_own_waits_for_nothing(tmp_path: Path) -> None:
    began = time.monotonic()
    with turn(tmp_path / "none") as had, turn(tmp_path / "none") as another:
        assert had
        assert another
    assert time.monotonic() - began < 1.0


def test_as_many_have_a_turn_as_there_are_files_and_the_next_one_waits(folder: Path) -> None:
    with turn(folder) as first, turn(folder) as second, turn(folder, within_s=0.3) as third:
        assert (first, second, third) == (True, True, False)
    with turn(folder, within_s=0.0) as again:
        assert again


def test_a_turn_that_is_given_back_is_taken_by_one_that_waits(folder: Path) -> None:
    with turn(folder), contextlib.ExitStack() as second:
        second.enter_context(turn(folder))
        program = (
            "import sys; from pathlib import Path; from holdfast_agent.burn_in import turn\n"
            "print('waits', flush=True)\n"
            "with turn(Path(sys.argv[1])) as had: print(had, flush=True)\n"
        )
        waiting = subprocess.Popen(
            [sys.executable, "-c", program, str(folder)],
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "waits\n"
        time.sleep(0.5)
        assert waiting.poll() is None
        second.close()
        assert waiting.communicate(timeout=30)[0] == "True\n"


def test_one_that_dies_gives_its_turn_back(folder: Path) -> None:
    (folder / "1").unlink()
    pid = os.fork()
    if pid == 0:
        with turn(folder):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    with turn(folder, within_s=0.0) as had:
        assert had


def test_the_local_cloud_has_a_few_turns_that_no_job_can_take(tmp_path: Path) -> None:
    mount = turns_mount(tmp_path, cores=64)
    assert mount.target == TURNS
    assert mount.read_only
    files = sorted(path for path in mount.source.rglob("*") if path.is_file())
    assert [str(path.relative_to(mount.source)) for path in files] == [
        f"{IDLE}/0", *(f"{JOINING}/{number}" for number in range(4))
    ]  # fmt: skip
    assert {path.stat().st_mode & 0o077 for path in (*files, mount.source / IDLE, mount.source / JOINING)} == {0}
    assert len(list((turns_mount(tmp_path / "other", cores=2).source / JOINING).iterdir())) == 2


@pytest.mark.parametrize(("words", "kind"), [((), JOINING), (("--idle",), IDLE)])
def test_a_deep_check_has_a_turn_while_it_measures(
    words: tuple[str, ...], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast_agent.commands.check.TURNS", str(tmp_path))
    monkeypatch.setattr("os.nice", lambda _: 0)
    monkeypatch.setattr("os.sched_setscheduler", lambda *_: None)
    (tmp_path / kind).mkdir()
    (tmp_path / kind / "0").touch()
    seen: list[bool] = []

    def trials(**_: object) -> Iterator[Trial]:
        with (tmp_path / kind / "0").open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                seen.append(True)
        yield Trial("none")

    monkeypatch.setattr("holdfast_agent.commands.check.burn_in", trials)
    main(["check", "--deep", *words, "--set=node.instance_id=i-1"])
    assert seen == [True]
