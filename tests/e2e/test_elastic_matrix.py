"""
Losses in the middle of changes of size, on real processes: each phase of a change at each kind of victim.

A case passes when its faults have fired and every bit of every step is that of a run that never changed its size, or
when the job has stopped with the reason that nobody has some part of the state. Run some with ``-k "shrink and give"``.
"""

import os
import signal
import time
from pathlib import Path

import pytest
from elastic_jobs import asking, elastic, written, wrong
from elastic_matrix import ASKED, Case, cases
from killing import run_job

from holdfast_runtime.launcher.node import ask

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
CASES = [*cases()]
STEPS = 20
NAMED = "no process has the state of step"


def test_there_are_at_least_sixty_cases_of_three_kinds() -> None:
    assert len(CASES) >= 60
    assert len({(case.change, case.name) for case in CASES}) == len(CASES)
    assert {case.change for case in CASES} == {*ASKED}


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four ranks throughout."""
    folder = tmp_path_factory.mktemp("elastic") / "calm"
    outcome = run_job(folder, elastic(sizes="", steps=STEPS))
    assert outcome.finished, outcome.text[-3000:]
    return folder


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.change}: {case.name}") for case in CASES])
def test_a_loss_in_a_change_of_size_keeps_every_bit_or_is_named(case: Case, calm: Path, tmp_path: Path) -> None:
    job = elastic(
        sizes="2,3,4",
        steps=STEPS,
        every=2,
        pause_s=0.1,
        faults=case.faults,
        restart_launchers=case.change != "lose",
        until=asking(tmp_path, ASKED[case.change]),
    )

    outcome = run_job(tmp_path, job)

    assert sorted(outcome.fired) == [*range(len(case.faults))], "the fault did not happen, so nothing was tested"
    going = [code for code in outcome.codes if code not in (-9, -99)]
    if going and not any(going):
        assert wrong(tmp_path, calm, steps=STEPS) == []
    else:
        assert NAMED in outcome.text, outcome.text[-3000:]
        assert wrong(tmp_path, calm, steps=max(written(tmp_path))) == []


@pytest.mark.parametrize(
    ("nodes", "codes"), [((2,), [0, 0, 0, 75]), ((0, 1, 2, 3), [143] * 4)], ids=["one launcher", "all launchers"]
)
def test_sigterm_is_a_notice_to_leave_where_the_others_can_go_on(
    nodes: tuple[int, ...], codes: list[int], calm: Path, tmp_path: Path
) -> None:
    told: list[int] = []

    def tell() -> bool:
        if not told and max(written(tmp_path), default=-1) >= 3:
            told.extend(launcher_of(tmp_path / f"{node}.sock") for node in nodes)
            for pid in told:
                os.kill(pid, signal.SIGTERM)
        return False

    outcome = run_job(
        tmp_path, elastic(sizes="2,3,4", steps=STEPS, pause_s=0.2, restart_launchers=False, until=tell, timeout_s=120)
    )

    assert sorted(outcome.codes) == codes, outcome.text[-3000:]
    steps = written(tmp_path)
    assert wrong(tmp_path, calm, steps=max(steps)) == []
    if len(nodes) == 1:
        assert max(steps) == STEPS - 1
        assert [len(each) for each in steps.values()] == [1] * STEPS, "nothing is done again"
        assert steps[STEPS - 1][-1].size == 3


def test_a_notice_that_is_shorter_than_a_step_is_the_loss_of_a_node(calm: Path, tmp_path: Path) -> None:
    told: list[int] = []

    def tell() -> bool:
        if not told and max(written(tmp_path), default=-1) >= 5:
            told.append(launcher_of(tmp_path / "3.sock"))
            os.kill(told[0], signal.SIGTERM)
            time.sleep(0.2)
            os.kill(told[0], signal.SIGKILL)
        return False

    job = elastic(sizes="2,3,4", steps=STEPS, every=2, pause_s=1.0, restart_launchers=False, until=tell, timeout_s=300)

    outcome = run_job(tmp_path, job)

    assert sorted(outcome.codes) == [-9, 0, 0, 0], outcome.text[-3000:]
    assert wrong(tmp_path, calm, steps=STEPS) == []
    assert written(tmp_path)[STEPS - 1][-1].size == 3


def test_newcomers_that_never_become_ready_leave_the_job_as_it_is(calm: Path, tmp_path: Path) -> None:
    asks, killed = asking(tmp_path, ((2, 2), (10, 4))), set[int]()

    def look() -> bool:
        """Those that have left are killed, and the processes that come in their places never begin."""
        done = written(tmp_path)
        if done and not killed and done[max(done)][-1].size == 2:
            (tmp_path / "stays-away").touch()
            killed.update(process["pid"] for node in (2, 3) for process in ask(tmp_path / f"{node}.sock")["processes"])
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
        return asks()

    outcome = run_job(tmp_path, elastic(sizes="2,3,4", steps=STEPS, every=2, pause_s=0.4, until=look, timeout_s=300))

    assert outcome.codes == (0,) * 4, outcome.text[-3000:]
    assert len(killed) == 2
    assert "resize requested: 4 nodes" in outcome.text
    assert wrong(tmp_path, calm, steps=STEPS) == []
    sizes = [written(tmp_path)[number][-1].size for number in range(STEPS)]
    assert (sizes[0], {*sizes[8:]}) == (4, {2})


def launcher_of(socket: Path) -> int:
    """The process that answers at a socket."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if str(socket).encode() in words and b"holdfast_runtime.launcher" in words:
            return int(path.parent.name)
    raise LookupError(f"no launcher has {socket}")
