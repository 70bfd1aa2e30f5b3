"""Records that change their state by the clock."""

from datetime import timedelta

import pytest

from holdfast.localcloud.aws.common import TRANSITION, RecordStore, now


@pytest.fixture
def clock(monkeypatch):
    """Moves the time; returns the function that does."""
    passed = [timedelta()]
    start = now()
    monkeypatch.setattr("holdfast.localcloud.aws.common.records.now", lambda: start + passed[0])

    def wait():
        passed[0] += TRANSITION

    return wait


@pytest.fixture
def shelf():
    return RecordStore(lambda key: KeyError(key))


def test_a_record_is_made_changed_and_deleted_in_a_moment_each(clock, shelf):
    record = shelf.add("a", {"name": "a"})
    seen = [record.status(settled="ACTIVE")]
    for doing in ("UPDATING", "DELETING"):
        clock()
        seen.append(record.status(settled="ACTIVE"))
        record.begin(doing)
        seen.append(record.status(settled="ACTIVE"))
    clock()

    assert seen == ["CREATING", "ACTIVE", "UPDATING", "ACTIVE", "DELETING"]
    with pytest.raises(KeyError):
        shelf.get("a")


def test_what_is_being_deleted_takes_no_other_change(clock, shelf):
    record = shelf.add("a", {})
    record.begin("DELETING")
    record.begin("UPDATING")

    assert record.status(settled="ACTIVE") == "DELETING"


def test_records_survive_a_restart(clock, shelf):
    shelf.add(("a", 1), {"name": "a"})
    again = RecordStore(lambda key: KeyError(key))
    again.load(shelf.dump())

    assert again.get(("a", 1)).status(settled="ACTIVE") == "CREATING"
    assert [content.content for content in again.values()] == [{"name": "a"}]
