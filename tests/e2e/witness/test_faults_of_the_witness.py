"""What happens to the witness under a running job of two nodes: training does not notice, and the vote comes back."""

import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from killing import PATIENT, Job, Outcome, run_job
from witnesses import WitnessProcess, witness

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]

CALM_STEPS = 400
DEADLINES = PATIENT.replace("heartbeat=10", "heartbeat=3")


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    outcome = run_job(
        tmp_path_factory.mktemp("calm"), Job(steps=CALM_STEPS, ranks=2, spares=0, deadlines=DEADLINES, timeout_s=300.0)
    )
    assert outcome.finished, outcome.text[-3000:]
    return outcome


class Story:
    """A job of two nodes and its witness; what happens to them is told in another thread than the job's."""

    def __init__(self, folder: Path, voter: WitnessProcess) -> None:
        self.voter = voter
        self._folder = folder
        self._over = False

    def play(self, happens: Callable[["Story"], None]) -> Outcome:
        """The job, until what happens has happened and some steps have followed."""
        told = threading.Thread(target=self._tell, args=(happens,))
        told.start()
        try:
            return run_job(
                self._folder,
                Job(
                    steps=1_000_000,
                    nodes=2,
                    ranks=1,
                    pause_s=0.05,
                    arguments=("--witness", self.voter.address),
                    restart_launchers=False,
                    deadlines=DEADLINES,
                    timeout_s=300.0,
                ),
            )
        finally:
            self._over = True
            told.join()

    def _tell(self, happens: Callable[["Story"], None]) -> None:
        try:
            self.trains(3)
            happens(self)
            self.trains(5)
        finally:
            for node in range(2):
                self.signal_launcher(node, signal.SIGTERM)

    def says(self, text: str, *, times: int = 1) -> None:
        """Wait until the launchers have said it so often."""
        self._until(lambda: (self._folder / "launchers.log").read_text(errors="replace").count(text) >= times)

    def trains(self, steps: int) -> None:
        """Wait for so many steps more."""
        newest = self._lines()
        self._until(lambda: self._lines() >= newest + steps)

    def signal_launcher(self, node: int, number: signal.Signals) -> None:
        with socket.socket(socket.AF_UNIX) as line:
            try:
                line.connect(str(self._folder / f"{node}.sock"))
            except OSError:
                return  # it is gone
            pid, _, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            os.kill(pid, number)

    def _lines(self) -> int:
        path = self._folder / "rank0.jsonl"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def _until(self, condition: Callable[[], bool]) -> None:
        while not self._over and not condition():
            time.sleep(0.02)


def bits(outcome: Outcome, calm: Outcome) -> list[str]:
    """Where the steps that both have made differ; there have to be many."""
    both = [step for step in calm.steps if step in outcome.steps]
    assert len(both) >= 8
    return [*outcome.differing, *(f"step {step}" for step in both if not equal(outcome.steps[step], calm.steps[step]))]


def equal(one: dict[int, tuple[str, int]], other: dict[int, tuple[str, int]]) -> bool:
    return all(other[rank] == value for rank, value in one.items())


def test_killed_and_started_again_it_gets_its_vote_back_and_the_job_may_lose_a_node(
    tmp_path: Path, calm: Outcome
) -> None:
    def happens(story: Story) -> None:
        story.voter.kill()
        story.says("witness: lost", times=2)
        story.trains(5)
        story.voter.start()
        story.says("generation 3: 2 ranks on nodes 0-1", times=2)
        story.says("quorum: tolerates the loss of 1 of 2 launchers", times=4)
        story.signal_launcher(1, signal.SIGKILL)
        story.says("generation 4: 2 ranks on nodes 0")

    with witness(tmp_path) as voter:
        outcome = Story(tmp_path, voter).play(happens)

    assert outcome.codes == (143, -9), outcome.text[-3000:]
    assert "starting generation 3: the witness is back" in outcome.text
    assert bits(outcome, calm) == []


def test_stopped_for_a_while_it_costs_no_view(tmp_path: Path, calm: Outcome) -> None:
    def happens(story: Story) -> None:
        story.voter.signal(signal.SIGSTOP)
        story.says("witness: lost: it was silent for 3 s", times=2)
        story.trains(5)
        story.voter.signal(signal.SIGCONT)
        story.says("quorum: tolerates the loss of 1 of 2 launchers", times=4)

    with witness(tmp_path) as voter:
        outcome = Story(tmp_path, voter).play(happens)

    assert outcome.codes == (143, 143), outcome.text[-3000:]
    assert "generation 3" not in outcome.text
    assert bits(outcome, calm) == []


def test_a_node_that_is_lost_while_it_is_stopped_is_recovered_from_when_it_goes_on(
    tmp_path: Path, calm: Outcome
) -> None:
    def happens(story: Story) -> None:
        story.voter.signal(signal.SIGSTOP)
        story.signal_launcher(0, signal.SIGKILL)
        story.says("node 0 is lost")
        story.says("witness: lost: it was silent for 3 s")
        story.voter.signal(signal.SIGCONT)
        story.says("generation 3: 2 ranks on nodes 1")

    with witness(tmp_path) as voter:
        outcome = Story(tmp_path, voter).play(happens)

    assert outcome.codes == (-9, 143), outcome.text[-3000:]
    assert bits(outcome, calm) == []


def test_a_node_that_is_lost_while_it_is_dead_ends_the_job_within_its_deadline(tmp_path: Path) -> None:
    def happens(story: Story) -> None:
        story.voter.kill()
        story.says("witness: lost", times=2)
        story.signal_launcher(1, signal.SIGKILL)
        story.says("the job ends")

    with witness(tmp_path) as voter:
        outcome = Story(tmp_path, voter).play(happens)

    assert outcome.codes == (1, -9), outcome.text[-3000:]
    assert "1 of 2 launchers that may vote and no witness are in reach, and 2 votes are needed" in outcome.text
