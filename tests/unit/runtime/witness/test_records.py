"""What a witness remembers of runs: bounded, and forgotten only in a way that costs nobody a vote twice."""

from dataclasses import replace

import pytest

from holdfast_runtime.membership import Ballot, Commit, Prepare, Promise, View
from holdfast_runtime.witness import Limits, Record, Records


def opened(records: Records, name: str = "7", *, now_s: float = 0.0) -> Record:
    record = records.open(run_id=name, seat=2, key="key", now_s=now_s)
    assert record is not None
    return record


def test_a_memory_is_found_by_its_identity_and_no_two_have_the_same() -> None:
    records = Records(Limits())

    one, other = opened(records), opened(records)

    assert one.witness.identity != other.witness.identity
    assert records.find(one.witness.identity) is one
    assert records.find(one.witness.identity + 1) is None


def test_it_votes_only_once_a_view_has_named_it() -> None:
    records = Records(Limits())
    record = opened(records)
    view = View(generation=1, nodes=(0, 0))

    before, _ = records.hear(record, Prepare(2, Ballot(1, 0), view), size=10)
    named = replace(view, generation=2, witness=record.witness.identity)
    after, changed = records.hear(record, Prepare(3, Ballot(1, 0), named), size=10)

    assert isinstance(before, Promise)
    assert not before.voter
    assert isinstance(after, Promise)
    assert after.voter
    assert changed


def test_a_run_is_forgotten_when_its_last_launcher_has_gone_after_a_goodbye() -> None:
    records = Records(Limits())
    record = opened(records)
    record.links = 2
    record.parted = True

    records.left(record, now_s=1.0)
    assert len(records) == 1
    records.left(record, now_s=2.0)
    assert len(records) == 0


def test_a_run_that_nobody_speaks_for_is_forgotten_after_its_time() -> None:
    records = Records(Limits(idle_s=100.0))
    spoken_for, idle = opened(records), opened(records)
    spoken_for.links = idle.links = 1
    records.left(idle, now_s=10.0)

    records.sweep(now_s=109.0)
    assert len(records) == 2
    records.sweep(now_s=111.0)
    assert len(records) == 1
    assert records.find(spoken_for.witness.identity) is spoken_for


def test_where_all_room_is_taken_the_run_that_was_idle_for_longest_goes_and_none_that_is_spoken_for() -> None:
    records = Records(Limits(runs=2))
    first, second = opened(records, now_s=0.0), opened(records, now_s=1.0)
    second.links = 1

    third = opened(records, now_s=2.0)
    third.links = 1

    assert records.find(first.witness.identity) is None
    assert records.open(run_id="4", seat=2, key="key", now_s=3.0) is None
    assert len(records) == 2


def test_views_have_a_bound_over_all_runs() -> None:
    records = Records(Limits(held_bytes=100))
    one, other = opened(records), opened(records)
    one.links = other.links = 1
    view = Commit(View(generation=1, nodes=(0, 0)))
    records.hear(one, view, size=60)

    with pytest.raises(ValueError, match="holds 100 bytes of views already"):
        records.hear(other, view, size=60)

    one.links = 0
    records.hear(other, view, size=60)
    assert records.find(one.witness.identity) is None
