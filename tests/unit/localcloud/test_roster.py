"""The list of processes: complete in itself, and as `status` has it."""

import pytest

from holdfast.cli.views import PROCESS_NAMES
from holdfast.localcloud.hyperpod.upkeep import END_AFTER_S, REPORT_AFTER_S, START_AFTER_S, Daemon, decide
from holdfast.localcloud.roster import EVERY, Place, SystemProcess, at, upkept


def test_each_process_is_noticed_in_time_restarted_and_reported() -> None:
    assert len({(one.name, one.place) for one in EVERY}) == len(EVERY)
    for one in EVERY:
        assert one.noticed_within_s <= 60.0
        assert one.reported
        assert one.stopped
        assert one.restarted_by


@pytest.mark.parametrize("daemon", [one for one in EVERY if one.unit], ids=lambda one: f"{one.name}-{one.place.name}")
def test_a_daemon_is_reported_and_restarted_within_the_times_that_the_list_promises(daemon: SystemProcess) -> None:
    look_s = 1.0
    assert REPORT_AFTER_S + look_s < daemon.noticed_within_s
    assert decide(Daemon(program=daemon.name, condition="gone", for_s=REPORT_AFTER_S)) == "report"
    assert decide(Daemon(program=daemon.name, condition="stopped", for_s=REPORT_AFTER_S)) == "report"
    assert decide(Daemon(program=daemon.name, condition="gone", for_s=START_AFTER_S, reported=True)) == "start"
    ends = decide(Daemon(program=daemon.name, condition="stopped", for_s=END_AFTER_S, reported=True)) == "end"
    assert ends is daemon.ends_when_stopped
    assert ends is ("killed" in daemon.stopped)


def test_status_has_a_word_for_each_process_of_the_machine() -> None:
    assert {one.name for one in at(Place.MACHINE)} == set(PROCESS_NAMES)


def test_each_kind_of_node_has_the_daemons_of_every_node() -> None:
    for place in (Place.CONTROLLER, Place.COMPUTE, Place.WORKER):
        assert "sshd" in {one.name for one in upkept(place)}
    assert {one.name for one in upkept(Place.COMPUTE)} == {"sshd", "munged", "slurmd", "holdfast-agent"}
