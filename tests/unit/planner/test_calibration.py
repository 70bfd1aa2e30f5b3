"""Calibration from events: intervals hold the truth as often as they say, and a ledger leaves no second out."""

import json
from pathlib import Path

import pytest
from event_logs import HOUR_NS, REPLACE_S, RESUME_S, SKEW, log_of
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.planner import ACCOUNTS, calibrate, estimate_time, ledgers
from holdfast_common import Event, kinds

SECOND_NS = 1_000_000_000
LOGS = 200


@pytest.mark.parametrize(("rate", "hours"), [(0.002, 200.0), (0.0005, 100.0)], ids=["many failures", "few failures"])
def test_the_interval_of_the_rate_holds_the_truth_in_at_least_95_percent_of_logs(rate: float, hours: float) -> None:
    held = 0
    for seed in range(LOGS):
        found = calibrate(log_of(rate=rate, instances=16, hours=hours, seed=seed)).rate
        held += found is not None and found.holds(rate)

    assert held >= 0.95 * LOGS


@pytest.mark.parametrize(("stage", "truth"), [("replace", REPLACE_S), ("resume", RESUME_S)])
def test_the_interval_of_a_stage_holds_the_truth_in_at_least_95_percent_of_logs(stage: str, truth: float) -> None:
    held, told = 0, 0
    for seed in range(LOGS):
        found = calibrate(log_of(rate=0.002, instances=16, hours=300.0, seed=seed)).stages.get(stage)
        if found is not None and found.low_s is not None:
            told += 1
            held += found.holds(truth * SKEW)

    assert told == LOGS
    assert held >= 0.95 * told


def test_a_stage_that_was_seen_once_has_no_interval() -> None:
    once = estimate_time([900.0])

    assert once is not None
    assert (once.mean_s, once.low_s, once.high_s) == (pytest.approx(900.0), None, None)


def test_a_stage_counts_with_its_mean_and_nine_of_ten_are_kept_apart() -> None:
    """Nine quick recoveries and a slow one cost what ten average ones cost, which a median would hide."""
    seen = estimate_time([10.0] * 8 + [50.0, 1000.0])

    assert seen is not None
    assert seen.mean_s == pytest.approx(113.0)
    assert seen.percentile_90_s == 50.0


def test_an_injected_fault_counts_for_stages_and_not_for_the_rate() -> None:
    log = log_of(rate=0.002, instances=4, hours=1.0, seed=0)[:5]
    fault = Event(time_ns=HOUR_NS, source="cli", kind=kinds.FAULT_INJECTED, node="i-0", fault="instance-lost")
    lost = Event(time_ns=HOUR_NS + 2 * SECOND_NS, source="control-plane", kind=kinds.NODE_LOST, node="i-0")

    found = calibrate([*log, fault, lost])

    assert found.injected == 1
    assert found.rate is not None
    assert found.rate.failures == 0
    assert found.stages["detect"].mean_s == pytest.approx(2.0)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0005, 0.01))
def test_the_accounts_of_a_ledger_add_up_to_the_wall_clock(seed: int, rate: float) -> None:
    (book,) = ledgers(log_of(rate=rate, instances=4, hours=50.0, seed=seed))

    assert set(book.totals_ns) == set(ACCOUNTS)
    assert sum(book.totals_ns.values()) == book.wall_ns
    assert all(nanoseconds >= 0 for nanoseconds in book.totals_ns.values())


def test_the_ledger_of_a_recorded_rehearsal_adds_up_to_its_wall_clock(repository: Path) -> None:
    lines = (repository / "tests" / "cases" / "events" / "rehearsal.jsonl").read_text().splitlines()
    events = [Event.from_json(line) for line in lines]

    books = ledgers(events)

    assert len(books) == 2
    for book in books:
        assert sum(book.totals_ns.values()) == book.wall_ns
        assert book.goodput is not None
    slow, quick = (book.goodput or 0.0 for book in books)
    assert quick > slow + 0.2, "the job that recovers in process loses much less"
    assert json.loads(lines[0])["version"] == 1
