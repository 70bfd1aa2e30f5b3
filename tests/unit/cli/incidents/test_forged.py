"""What a job writes into its log opens, closes and prices no incident, and is marked as reported where it is shown."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.cli.views.incidents import Fleet, Price, incident_detail, incident_table, reported_note, rows_of
from holdfast.cli.views.plan import comparison_rows
from holdfast.planner.actual import calibrate, compare, learn, ledgers
from holdfast.planner.model import Checkpoints, Failures, Scenario, Strategy
from holdfast_common import Event, State, kinds, parse_events, timeline

LOGS = Path(__file__).parents[3] / "cases" / "events"
FLEET = Fleet(type_of_group={"workers": "ml.p5.48xlarge", "gpu": "ml.p5.48xlarge"}, price=Price(for_all=36.0))
OF_JOBS = ("training_again_s", "at_strength_s", "steps_lost", "steps_redone", "job", "reported_gpu_hours",
           "reported_cost_usd", "reported_by_job")  # fmt: skip
KINDS = sorted(value for name, value in vars(kinds).items() if name.isupper())
GHOST = "i-of-no-cluster"


def log(name: str) -> tuple[Event, ...]:
    return parse_events((LOGS / f"{name}.jsonl").read_text().splitlines()).events


def forged(of: tuple[Event, ...], *, kinds_of: st.SearchStrategy[str]) -> st.SearchStrategy[list[Event]]:
    """Events as a job may write them about any node, within the time of a log and with the ids that stand in it."""
    first, last = min(event.time_ns for event in of), max(event.time_ns for event in of)
    nodes = st.sampled_from([*sorted({event.node for event in of}), GHOST])
    ids = st.sampled_from(sorted({str(event.detail.get("incident", "")) for event in of}))
    values = st.text(max_size=3) | st.integers(0, 10**6) | st.booleans()
    names = ("host", "group", "step", "severity", "signal_ns", "code", "outcome")
    detail = st.fixed_dictionaries(
        {"incident": ids, "replaces": nodes, "replacement": nodes, "nodes": nodes},
        optional=dict.fromkeys(names, values),
    )
    return st.lists(
        st.builds(
            Event,
            time_ns=st.integers(first, last),
            source=st.just("job"),
            kind=kinds_of,
            node=nodes,
            job=st.sampled_from(["", "1", "7", "2"]),
            fault=st.sampled_from(["", "gpu-lost", "instance-lost", "rank-died"]),
            action=st.sampled_from(["", "replace", "none"]),
            evidence=st.text(max_size=4),
            duration_s=st.none() | st.floats(0, 1e9),
            detail=detail,
        ),
        min_size=1,
        max_size=5,
    )


def trusted(events: tuple[Event, ...]) -> list[dict[str, Any]]:
    """The rows without what is marked as reported."""
    rows = [asdict(row) for _, row in rows_of(events, FLEET)]
    return [{name: value for name, value in row.items() if name not in OF_JOBS} for row in rows]


@pytest.mark.parametrize(
    "name", ["hand-over", "two-at-once", "breaker", "withdrawn", "rehearsal", "controller-restart"]
)
@given(st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_event_of_a_job_changes_anything_of_an_incident_but_what_is_marked(name: str, data: st.DataObject) -> None:
    events = log(name)
    more = data.draw(forged(events, kinds_of=st.sampled_from(KINDS)))
    before = {one.id: one for one in timeline(events).incidents}

    after = timeline([*events, *more]).incidents

    assert trusted((*events, *more)) == trusted(events)
    assert {one.id for one in after} == set(before)
    for one in after:
        told = set(one.reported_by_job) | (set() if one.resumed_by_agent else {"job", "resumed_ns", "stopped_s"})
        same = before[one.id]
        differing = {key for key, value in vars(one).items() if value != getattr(same, key)}
        # What a job says of an agent's hand-over is only which nodes it had and which steps were lost.
        assert differing <= told | set(same.reported_by_job)


@pytest.mark.parametrize("name", ["rehearsal", "two-at-once"])
@given(st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_event_of_a_job_changes_the_rate_of_failures_or_how_long_detection_and_replacement_take(
    name: str, data: st.DataObject
) -> None:
    events = log(name)
    more = data.draw(forged(events, kinds_of=st.sampled_from(KINDS)))

    before, after = calibrate(events), calibrate([*events, *more])

    assert (after.rate, after.injected) == (before.rate, before.injected)
    for stage in ("detect", "replace"):
        assert after.stages.get(stage) == before.stages.get(stage)


def test_a_job_that_says_that_all_nodes_are_lost_is_on_no_account_of_another_job() -> None:
    events = log("rehearsal")
    job = next(event.job for event in events if event.kind == kinds.JOB_STARTED)
    lies = [
        replace(event, source="job", job="666", kind=kind, time_ns=event.time_ns + 1)
        for event in events
        for kind in (kinds.NODE_LOST, kinds.NODE_REPLACED, kinds.FAULT_INJECTED, kinds.VERDICT)
    ]
    (before,) = [one for one in ledgers(events) if one.job == job]
    (after,) = [one for one in ledgers([*events, *lies]) if one.job == job]

    assert after.totals_ns == before.totals_ns


@pytest.mark.parametrize("node", ["i-0000000000000000a", GHOST])
@pytest.mark.parametrize("kind", [kinds.VERDICT, kinds.NODE_LOST, kinds.NODE_FAILED, kinds.FAULT_INJECTED])
def test_a_forged_fault_of_a_node_that_exists_or_does_not_is_no_incident(kind: str, node: str) -> None:
    assert timeline([Event(time_ns=1, source="job", kind=kind, node=node, fault="gpu-lost")]).incidents == ()
    assert len(timeline([Event(time_ns=1, source="agent", kind=kind, node=node, fault="gpu-lost")]).incidents) == 1


@pytest.mark.parametrize(
    "kind",
    [kinds.VERDICT_WITHDRAWN, kinds.NODE_REPLACED, kinds.NODE_REBOOTED, kinds.NODE_DELETED, kinds.CLUSTER_DELETED,
     kinds.HANDED_OVER, kinds.JOB_RESUMED, kinds.JOB_FINISHED],
)  # fmt: skip
@pytest.mark.parametrize("severity", ["node", "process"])
def test_a_job_closes_no_incident(kind: str, severity: str) -> None:
    detail = {"incident": "a", "severity": severity}
    verdict = Event(time_ns=1, source="agent", kind=kinds.VERDICT, node="i-1", action="reboot", detail=detail)
    word = Event(time_ns=2, source="job", kind=kind, node="i-1", job="7", detail={"incident": "a", "nodes": "i-1"})

    (incident,) = timeline([verdict, word]).incidents

    assert incident.is_open


def test_what_was_wrong_with_a_process_is_over_when_its_node_was_replaced() -> None:
    detail = {"incident": "a", "severity": "process"}
    verdict = Event(time_ns=1, source="agent", kind=kinds.VERDICT, node="i-1", action="restart-process", detail=detail)
    replaced = Event(
        time_ns=2, source="control-plane", kind=kinds.NODE_REPLACED, node="i-2", detail={"replaces": "i-1"}
    )

    (incident,) = timeline([verdict, replaced]).incidents

    assert (incident.state, incident.is_open, incident.restored_ns) == (State.WITHDRAWN, False, None)


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Callable[[Any], str]:
    from rich.console import Console

    def of(part: Any) -> str:
        Console(width=200, force_terminal=False).print(part)
        return capsys.readouterr().out

    return of


def test_what_only_a_job_tells_is_marked_wherever_it_is_shown(shown: Callable[[Any], str]) -> None:
    ((_, row),) = rows_of(log("controller-restart"), FLEET)

    assert shown(incident_detail(row)).count("reported by the job") >= 3
    assert shown(incident_table([row]))
    assert reported_note([row]) == ("lost, redone, job, training, strength: reported by the job, counted in no price")


def test_a_job_that_slurm_had_on_the_node_is_named_and_not_marked(shown: Callable[[Any], str]) -> None:
    lost = Event(time_ns=1, source="control-plane", kind=kinds.NODE_LOST, node="i-1", fault="instance-lost")
    replacing = Event(time_ns=2, source="control-plane", kind=kinds.NODE_REPLACING, node="i-1", detail={"jobs": "7"})
    ((_, row),) = rows_of([lost, replacing], FLEET)

    assert row.job == "7"
    assert "reported by the job" not in shown(incident_detail(row))


def test_a_plan_says_which_of_its_figures_only_jobs_tell() -> None:
    scenario = Scenario(
        instances=4,
        spares=1,
        failures=Failures(per_instance_hour=0.001),
        checkpoints=Checkpoints(interval_s=600.0, write_s=10.0),
        strategy=Strategy(
            name="s", title="s", detect_s=1.0, replace_s=1.0, resume_s=1.0, redo="checkpoint", redo_s=1.0
        ),
    )

    rows = {row[0] for row in comparison_rows(compare(scenario, learn(log("rehearsal"))))}

    assert {"goodput (reported by jobs)", "resume, mean, s (reported by jobs)", "failures per instance-hour",
            "detect, mean, s", "replace, mean, s"} <= rows  # fmt: skip
