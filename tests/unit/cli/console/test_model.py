"""What the page shows, from states: health, ranks, spares, states of jobs, series, bars and rows."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from console_lab import facts_of, recorded

from holdfast.cli.console.model import NodeFacts, event_rows, groups_of, incidents_of, jobs_of, series_of
from holdfast.cli.console.state import LogState
from holdfast.cli.views.incidents import Clock, Fleet, rows_in
from holdfast_common import Event, kinds

S = 1_000_000_000
WORKERS = [
    "i-38a78805dcca719d9",
    "i-24274686288d2caeb",
    "i-562feb4be4523219c",
    "i-24a29bb5cf67bd27c",
    "i-ec9f10033dc18f019",
]
HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e\ud800"


def until(events: list[Event], end_ns: int) -> LogState:
    state = LogState()
    state.add(event for event in events if event.time_ns <= end_ns)
    state.settle(1 << 62)
    return state


def time_of(events: list[Event], kind: str) -> int:
    return next(event.time_ns for event in events if event.kind == kind)


def nodes_of(state: LogState, *nodes: NodeFacts) -> dict[str, dict[str, Any]]:
    groups = groups_of(
        facts_of(0).groups,
        nodes
        or [
            NodeFacts(
                instance_id=one, group="workers", instance_type="ml.g5.8xlarge", host=f"host-{at}", status="Running"
            )
            for at, one in enumerate(WORKERS)
        ],
        jobs=state.jobs.values(),
        incidents=state.incidents.incidents(),
        detectors=state.detectors.found(),
    )
    return {one["id"]: one for group in groups for one in group["nodes"]}


def jobs_in(state: LogState, now_ns: int) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in jobs_of(state.jobs.values(), state.incidents.incidents(), now_ns=now_ns)}


def test_nodes_have_their_rank_and_the_fifth_is_the_spare(repository: Path) -> None:
    events = recorded(repository, "controller-restart")
    nodes = nodes_of(until(events, time_of(events, kinds.JOB_RESUMED)))

    assert [nodes[one]["ranks"] for one in WORKERS] == ["rank 0", "rank 1", "rank 2", "", "rank 3"]
    assert nodes[WORKERS[3]]["level"] == "bad"
    assert {nodes[one]["level"] for one in WORKERS if one != WORKERS[3]} == {"good"}


def test_a_node_that_returns_to_a_job_is_its_spare(repository: Path) -> None:
    events = recorded(repository, "boundary")
    nodes = nodes_of(until(events, time_of(events, kinds.SPARE_READY)))

    assert (nodes[WORKERS[3]]["role"], nodes[WORKERS[3]]["level"]) == ("spare", "good")
    assert nodes[WORKERS[4]]["ranks"] == "rank 3"


def test_no_node_has_a_rank_after_the_end_of_its_job(repository: Path) -> None:
    assert {one["role"] for one in nodes_of(until(recorded(repository, "boundary"), 1 << 62)).values()} == {""}


def test_ranks_are_counted_where_a_node_has_several_and_not_guessed_where_they_differ() -> None:
    def ranks(world_size: int) -> set[str]:
        detail = {"step": 0, "world_size": world_size, "nodes": ",".join(WORKERS[:4])}
        started = Event(time_ns=S, source="job", kind=kinds.JOB_STARTED, job="7", node=WORKERS[0], detail=detail)
        return {one["ranks"] for one in nodes_of(until([started], 1 << 62)).values() if one["role"]}

    assert (ranks(4), ranks(32), ranks(30)) == ({"rank 0", "rank 1", "rank 2", "rank 3"}, {"8 ranks"}, {"ranks"})


@pytest.mark.parametrize(
    ("status", "level"), [("Running", "good"), ("Pending", "changing"), ("Failure", "bad"), ("New", "warn")]
)
def test_the_level_of_a_node_follows_from_its_status(status: str, level: str) -> None:
    node = NodeFacts(instance_id="i-9", group="gone", instance_type="t", host="", status=status, message="why")
    assert nodes_of(LogState(), node)["i-9"]["level"] == level


def test_a_lost_detector_is_a_warning_with_its_evidence() -> None:
    lost = Event(
        time_ns=S,
        source="agent",
        kind=kinds.DETECTOR_LOST,
        node=WORKERS[0],
        evidence="no /dev/kmsg",
        detail={"detector": "kernel"},
    )
    node = nodes_of(until([lost], 1 << 62))[WORKERS[0]]
    assert (node["level"], node["detectors"]) == ("warn", ["kernel: no /dev/kmsg"])


def test_a_job_runs_recovers_runs_and_finishes(repository: Path) -> None:
    events = recorded(repository, "controller-restart")
    lost_ns, resumed_ns = time_of(events, kinds.LAUNCHER_LOST), time_of(events, kinds.JOB_RESUMED)

    def seen(at_ns: int) -> tuple[str, str]:
        job = jobs_in(until(events, at_ns), at_ns)["7"]
        return job["state"], job["level"]

    assert seen(lost_ns - S) == ("running", "good")
    assert seen(lost_ns) == ("recovering", "bad")
    assert seen(resumed_ns) == ("running", "good")
    assert seen(events[-1].time_ns) == ("finished", "")


def test_a_job_whose_node_is_out_of_service_recovers_until_it_is_started_again(repository: Path) -> None:
    """Slurm puts it back into its queue; no launcher reports anything."""
    events = [event for event in recorded(repository, "rehearsal") if event.job in ("", "1")]
    lost_ns, resumed_ns = time_of(events, kinds.NODE_LOST), time_of(events, kinds.JOB_RESUMED)

    job = jobs_in(until(events, resumed_ns - 1), resumed_ns - 1)["1"]
    assert (job["state"], job["note"]) == ("recovering", "instance-lost on ip-10-1-0-14")
    assert jobs_in(until(events, lost_ns - 1), lost_ns - 1)["1"]["state"] == "running"
    assert jobs_in(until(events, resumed_ns), resumed_ns)["1"]["state"] == "running"


def test_a_job_without_a_report_is_silent_and_names_the_command_that_tells_why(repository: Path) -> None:
    events = [event for event in recorded(repository, "hand-over") if event.kind != kinds.JOB_FINISHED]
    job = jobs_in(until(events, 1 << 62), events[-1].time_ns + 300 * S)["7"]

    assert (job["state"], job["level"], job["rate"]) == ("silent", "warn", None)
    assert "holdfast why 7" in job["note"]


def test_goodput_of_a_job_does_not_fall_between_two_reports(repository: Path) -> None:
    events = [event for event in recorded(repository, "hand-over") if event.kind != kinds.JOB_FINISHED]
    moved_ns = [event.time_ns for event in events if event.kind == kinds.JOB_PROGRESS][-1]
    state = until(events, moved_ns)

    at_once, later = (jobs_in(state, moved_ns + wait_ns)["7"]["goodput"] for wait_ns in (0, S))
    assert at_once == later
    assert jobs_in(state, moved_ns + 60 * S)["7"]["goodput"] < at_once, "a standstill is lost time"


def test_goodput_of_a_job_and_the_end_of_its_curve_agree_while_it_stands_still(repository: Path) -> None:
    events = [event for event in recorded(repository, "hand-over") if event.kind != kinds.JOB_FINISHED]
    state, now_ns = until(events, 1 << 62), events[-1].time_ns + 30 * S

    series = series_of(state.jobs["7"], now_ns=now_ns)
    assert series["goodput"][-1] == pytest.approx(jobs_in(state, now_ns)["7"]["goodput"], rel=1e-4)
    assert series["t"][-1] == pytest.approx(now_ns / 1e6, abs=0.1)
    assert (series["rate"][-1], series["loss"][-1]) == (0.0, None)
    assert len({len(column) for column in series.values()}) == 1


def test_a_standstill_is_in_the_step_rate(repository: Path) -> None:
    events = recorded(repository, "rehearsal")
    series = series_of(until(events, 1 << 62).jobs["1"], now_ns=0)
    resumed_ms = time_of(events, kinds.JOB_RESUMED) / 1e6
    at = next(place for place, time in enumerate(series["t"]) if time == pytest.approx(resumed_ms, abs=0.1))

    assert series["rate"][at] == 0.0
    assert series["rate"][at - 1] > 1.0
    assert series["rate"][at + 1] > 1.0


@pytest.mark.parametrize("name", ["hand-over", "boundary", "breaker", "two-at-once", "rehearsal", "withdrawn"])
def test_parts_of_a_bar_follow_each_other(repository: Path, name: str) -> None:
    state = until(recorded(repository, name), 1 << 62)
    found = incidents_of(rows_in(state.incidents, Fleet(), stalls=Clock()))

    assert found["total"] == len(found["rows"]) > 0
    for row in found["rows"]:
        times = [row[key] for key in ("start", "noticed", "resumed", "strong") if row[key] is not None]
        assert times[:2] == sorted(times[:2])
        assert row["end"] is None or row["end"] >= row["start"]
        assert (row["end"] is None) == row["open"]
        assert row["evidence_total"] >= len(row["evidence"])


def test_the_newest_of_many_incidents_are_shown_and_all_are_counted(repository: Path) -> None:
    state = until(recorded(repository, "two-at-once"), 1 << 62)
    found = incidents_of(rows_in(state.incidents, Fleet()), most=1)

    assert (found["total"], len(found["rows"])) == (2, 1)
    assert found["rows"][0]["fault"] == "driver-hung"


def test_every_text_of_others_is_one_line_that_a_browser_can_show() -> None:
    detail = {"incident": HOSTILE, "host": HOSTILE, "launcher": 1, "nodes": HOSTILE, "step": 1}
    events = [
        Event(
            time_ns=at * S,
            source="job" if kind.startswith("job") else "agent",
            kind=kind,
            job=HOSTILE,
            node=HOSTILE,
            fault=HOSTILE,
            evidence=HOSTILE,
            action=HOSTILE,
            detail=detail,
        )
        for at, kind in enumerate((kinds.JOB_STARTED, kinds.JOB_PROGRESS, kinds.VERDICT, kinds.JOB_STOPPED), start=1)
    ]
    state = until(events, 1 << 62)
    node = NodeFacts(
        instance_id=HOSTILE, group="workers", instance_type=HOSTILE, host=HOSTILE, status=HOSTILE, message=HOSTILE
    )
    everything = [
        nodes_of(state, node),
        jobs_in(state, 9 * S),
        incidents_of(rows_in(state.incidents, Fleet())),
        event_rows(state.recent.after(0)),
        [series_of(one, now_ns=9 * S) for one in state.jobs.values()],
    ]
    text = json.dumps(everything, ensure_ascii=False, allow_nan=False)

    text.encode()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "<img" in text, "it is shown as it is written"


def test_a_row_of_an_event_leaves_out_what_has_a_column(repository: Path) -> None:
    events = recorded(repository, "rehearsal")
    lost = next(event for event in events if event.kind == kinds.NODE_LOST)
    ((number, time_ms, source, node, kind, job, text, level, host),) = event_rows([(4, lost)])

    assert (number, source, node, kind, job, level, host) == (
        4,
        "control-plane",
        lost.node,
        "node_lost",
        "",
        "bad",
        "ip-10-1-0-14",
    )
    assert time_ms == pytest.approx(lost.time_ns / 1e6, abs=0.1)
    assert text == "instance-lost · replace · its init process is gone"
    ((*_, short, _, _),) = event_rows([(1, replace(lost, evidence="x" * 5000))])
    assert len(short) == 600
