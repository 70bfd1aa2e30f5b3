"""A stall of a job is an incident of the job, and marked as the job's own report."""

from holdfast.cli.views.incidents import Clock, Fleet, rows_of
from holdfast_common import Event, kinds

SECOND = 1_000_000_000


def event(at_s: int, kind: str, *, duration_s: float | None = None, **detail: int | bool) -> Event:
    return Event(
        time_ns=at_s * SECOND, source="job", job="7", node="i-1", kind=kind, duration_s=duration_s, detail=detail
    )


EVENTS = [
    event(10, kinds.JOB_STARTED, step=0),
    event(50, kinds.JOB_PROGRESS, step=80),
    event(171, kinds.RECOVERY_DETECTED, duration_s=121.0, planned=False),
    event(174, kinds.JOB_RESUMED, step=80),
]


def test_a_stall_is_listed_from_its_last_step_on() -> None:
    ((incident, row),) = rows_of(EVENTS, Fleet(), stalls=Clock())

    assert (row.fault, row.job, row.state) == ("job-stall", "7", "withdrawn")
    assert (row.started_ns, row.verdict_s, row.training_again_s) == (50 * SECOND, 121.0, 124.0)
    assert incident.names == (row.id,)
    assert {"fault", "started_ns", "verdict_s", "training_again_s"} <= set(row.reported_by_job)
    assert row.cost_usd is None
    assert "holdfast why 7" in row.evidence[0].text


def test_a_job_that_stands_still_is_an_open_incident() -> None:
    ((_, row),) = rows_of(EVENTS[:2], Fleet(), stalls=Clock(now_ns=180 * SECOND, runs=lambda _: True))

    assert (row.state, row.started_ns) == ("open", 50 * SECOND)


def test_a_standstill_that_an_incident_of_a_node_has_is_not_listed_twice() -> None:
    lost = Event(time_ns=60 * SECOND, source="control-plane", node="i-1", kind=kinds.NODE_LOST, fault="node-lost")
    start = Event(**{**vars(EVENTS[0]), "detail": {"step": 0, "nodes": "i-1"}})
    rows = [row for _, row in rows_of([start, EVENTS[1], lost, *EVENTS[2:]], Fleet(), stalls=Clock())]

    assert [row.fault for row in rows] == ["node-lost"]
