"""What is learned from incidents: rates and stages of the planner, ledgers, and the line of ``holdfast status``."""

from pathlib import Path

import pytest

from holdfast.cli.deployed import IncidentView
from holdfast.cli.views.incidents import open_line
from holdfast.planner import calibrate, ledgers
from holdfast_common import Event, kinds, parse_events


def recorded(repository: Path, name: str) -> list[Event]:
    text = (repository / "tests" / "cases" / "events" / f"{name}.jsonl").read_text()
    return list(parse_events(text.splitlines()).events)


def uninjected(events: list[Event]) -> list[Event]:
    return [event for event in events if event.kind != kinds.FAULT_INJECTED]


def test_a_verdict_counts_as_noticing_and_a_hand_over_as_resuming(repository: Path) -> None:
    stages = calibrate(recorded(repository, "hand-over")).stages

    assert stages["detect"].mean_s == pytest.approx(0.41)
    assert stages["resume"].mean_s == pytest.approx(1.92 - 0.41)
    assert stages["replace"].mean_s == pytest.approx(10.1 - 0.41)


def test_the_wait_for_a_boundary_is_no_time_of_recovery(repository: Path) -> None:
    stages = calibrate(recorded(repository, "boundary")).stages

    assert stages["resume"].mean_s == pytest.approx(31.2 - 29.3)
    assert stages["replace"].mean_s == pytest.approx(42.3 - 29.3)


def test_a_verdict_that_was_withdrawn_is_no_failure(repository: Path) -> None:
    found = calibrate(recorded(repository, "withdrawn"))

    assert found.rate is not None
    assert (found.rate.failures, "detect" in found.stages) == (0, False)


def test_each_accused_instance_is_a_failure_and_two_faults_of_one_instance_are_one(repository: Path) -> None:
    accused = calibrate(uninjected(recorded(repository, "breaker"))).rate
    events = uninjected(recorded(repository, "hand-over"))
    verdict = next(event for event in events if event.kind == kinds.VERDICT)
    second = Event(
        time_ns=verdict.time_ns + 10**8, source="agent", kind=kinds.VERDICT, node=verdict.node, fault="mount-stalled",
        action="reboot", detail={"incident": "another", "when": "now", "severity": "node"},
    )  # fmt: skip
    twice = calibrate([*events, second]).rate

    assert accused is not None
    assert twice is not None
    assert (accused.failures, twice.failures) == (4, 1)


def test_a_hand_over_costs_the_ledger_no_more_than_it_says(repository: Path) -> None:
    events = recorded(repository, "hand-over")
    (book,) = ledgers(events)

    assert sum(book.totals_ns.values()) == book.wall_ns
    assert book.totals_ns["redo"] == 0
    lost_s = (book.wall_ns - book.totals_ns["useful"] - book.totals_ns["idle"]) / 1e9
    assert lost_s == pytest.approx(0.74 + 0.05)


def test_steps_that_are_kept_were_useful_until_the_fault(repository: Path) -> None:
    books = ledgers(recorded(repository, "rehearsal"))

    assert books[1].totals_ns["redo"] == 0


@pytest.mark.parametrize("count", [1, 3, 4])
def test_open_incidents_are_a_line_that_names_the_newest(count: int) -> None:
    line = open_line(
        [IncidentView(id=f"a-{at}", node="i-1", host="ip-1", fault="gpu-lost", state="refused") for at in range(count)]
    )

    assert line is not None
    assert line.plain.startswith(f"{count} open: gpu-lost on ip-1 (refused, a-")
    assert line.plain.endswith("; 1 more") == (count == 4)


def test_where_none_is_open_there_is_no_line() -> None:
    assert open_line([]) is None
