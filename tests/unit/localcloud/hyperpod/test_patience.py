"""A controller that is slow is waited for; one that does not run is not."""

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.localcloud.hyperpod.slurm import Slurm, SlurmError

DAEMONS = "holdfast.localcloud.hyperpod.slurm.daemons"
SCHEDULER = "holdfast.localcloud.hyperpod.slurm.scheduler"
LOOK_S = 10.0
"""How long each question takes on this machine."""


class Machine:
    """A busy one: its slurmctld answers the question of this number."""

    def __init__(self, *, answers_at: int) -> None:
        self.answers_at = answers_at
        self.now_s, self.asked, self.runs = 0.0, 0, True

    def answers(self, _node: Any) -> bool:
        self.now_s += LOOK_S
        self.asked += 1
        return self.asked >= self.answers_at


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(answers_at=12)
    clock = SimpleNamespace(monotonic=lambda: machine.now_s, sleep=lambda _: None)
    monkeypatch.setattr(f"{SCHEDULER}.time", clock)
    monkeypatch.setattr(f"{DAEMONS}.controller_answers", machine.answers)
    monkeypatch.setattr(f"{DAEMONS}.controller_runs", lambda _: machine.runs)
    return machine


def formed() -> Slurm:
    """Its configuration is there, and a lifecycle script starts slurmctld."""
    node: Any = SimpleNamespace(read_file=lambda _: b"", alive=lambda: True)
    slurm = Slurm()
    slurm.form(controller=node, conf="", before_start=None)
    return slurm


def test_a_slurmctld_that_runs_is_waited_for_beyond_its_time(busy: Machine) -> None:
    formed().wait_answering(timeout_s=30.0)

    assert (busy.asked, busy.now_s) == (12, 120.0)


def test_one_that_does_not_run_fails_its_node_in_time(busy: Machine) -> None:
    busy.runs = False

    with pytest.raises(SlurmError, match="slurmctld did not respond within 40 s"):
        formed().wait_answering(timeout_s=30.0)


def test_one_that_runs_and_never_answers_is_given_up_at_last(busy: Machine) -> None:
    busy.answers_at = 1000

    with pytest.raises(SlurmError, match="did not respond within 310 s"):
        formed().wait_answering(timeout_s=30.0)


def test_nobody_waits_for_the_controller_of_a_cluster_that_is_deleted(busy: Machine) -> None:
    given_up = itertools.chain([False, False], itertools.repeat(True))

    with pytest.raises(SlurmError, match="is being deleted"):
        formed().wait_answering(timeout_s=30.0, is_given_up=lambda: next(given_up))

    assert busy.asked == 3
