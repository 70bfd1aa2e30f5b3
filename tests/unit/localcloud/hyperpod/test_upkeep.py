"""What is done about a daemon that is gone or stands still, and when."""

import pytest

from holdfast.localcloud.hyperpod.upkeep import Condition, Daemon, Decision, condition, decide
from holdfast.localcloud.roster import Place


@pytest.mark.parametrize(
    ("program", "now_is", "for_s", "told", "decision"),
    [
        ("slurmctld", "well", 100.0, False, ""),
        ("slurmctld", "gone", 1.0, False, ""),
        ("slurmctld", "gone", 3.0, False, "report"),
        ("slurmctld", "gone", 3.0, True, ""),
        ("slurmctld", "gone", 8.0, True, "start"),
        ("slurmd", "gone", 8.0, True, "start"),
        ("munged", "gone", 8.0, True, "start"),
        ("slurmctld", "stopped", 3.0, False, "report"),
        ("slurmctld", "stopped", 29.0, True, ""),
        ("slurmctld", "stopped", 30.0, True, "end"),
        ("munged", "stopped", 30.0, True, "end"),
        ("slurmd", "stopped", 300.0, True, ""),
        ("sshd", "gone", 8.0, True, "start"),
        ("sshd", "stopped", 3.0, False, "report"),
        ("sshd", "stopped", 300.0, True, ""),
        ("mariadbd", "stopped", 30.0, True, "end"),
        ("holdfast-agent", "gone", 3.0, False, "report"),
        ("kubelet", "stopped", 30.0, True, "end"),
    ],
)
def test_a_daemon_is_told_of_then_started_or_ended(
    program: str, now_is: Condition, for_s: float, told: bool, decision: Decision
) -> None:
    assert decide(Daemon(program=program, condition=now_is, for_s=for_s, reported=told)) == decision


def test_a_unit_that_restarts_itself_has_its_turn_first() -> None:
    """RestartSec is 5 s in our drop-in and in the unit of MariaDB."""
    assert decide(Daemon(program="slurmctld", condition="gone", for_s=5.5, reported=True)) == ""


@pytest.mark.parametrize(
    ("program", "place", "running", "expected"),
    [
        ("slurmctld", Place.CONTROLLER, "S", "well"),
        ("slurmctld", Place.CONTROLLER, "T", "stopped"),
        ("slurmctld", Place.CONTROLLER, None, "gone"),
        ("slurmctld", Place.COMPUTE, None, "well"),
        ("slurmd", Place.CONTROLLER, None, "well"),
        ("slurmd", Place.COMPUTE, None, "gone"),
        ("munged", Place.COMPUTE, "D", "well"),
        ("sshd", Place.COMPUTE, None, "gone"),
        ("sshd", Place.WORKER, None, "gone"),
        ("mariadbd", Place.CONTROLLER, None, "gone"),
        ("mariadbd", Place.COMPUTE, None, "well"),
        ("kubelet", Place.WORKER, "T", "stopped"),
        ("kubelet", Place.COMPUTE, None, "well"),
    ],
)
def test_what_need_not_run_on_a_node_is_not_missed(
    program: str, place: Place, running: str | None, expected: Condition
) -> None:
    assert condition(program, place=place, running=running) == expected
