"""Incidents: one story from events in any order, with parts missing, from agents, control plane and jobs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_common import Event, Incident, State, kinds, timeline

NODE, SPARE, NEW = "i-0000000000000000a", "i-0000000000000000b", "i-0000000000000000c"
START_NS = 1_795_000_000_000_000_000


def at(seconds: float, kind: str, source: str = "control-plane", *, node: str = NODE, **values: Any) -> Event:
    return Event(time_ns=START_NS + round(seconds * 1e9), source=source, kind=kind, node=node, **values)


def verdict(
    seconds: float, incident: str = "a-1", *, fault: str = "gpu-lost", remedy: str = "replace", **more: Any
) -> Event:
    detail = {"incident": incident, "severity": "device", "when": "now", **more.pop("detail", {})}
    return at(seconds, kinds.VERDICT, "agent", fault=fault, action=remedy, detail=detail, **more)


def of_agent(seconds: float, kind: str, incident: str = "a-1", **more: Any) -> Event:
    return at(seconds, kind, "agent", detail={"incident": incident, **more.pop("detail", {})}, **more)


def job(seconds: float, kind: str, step: int, **detail: str | int) -> Event:
    return at(seconds, kind, "job", node="i-1", job="7", detail={"step": step, **detail})


def replaced(seconds: float, *, old: str = NODE, new: str = NEW) -> Event:
    return at(seconds, kinds.NODE_REPLACED, node=new, detail={"replaces": old})


def told(*events: Event) -> tuple[Incident, ...]:
    return timeline(events).incidents


def only(*events: Event) -> Incident:
    (incident,) = told(*events)
    return incident


HANDED_OVER = (
    job(-10, kinds.JOB_STARTED, 0, nodes=f"i-1,{NODE}"),
    job(-1, kinds.JOB_PROGRESS, 9),
    at(0, kinds.FAULT_INJECTED, "cli", fault="xid-79"),
    verdict(0.5, detail={"code": 79, "signal_ns": START_NS + 200_000_000}, evidence="NVRM: Xid 79"),
    of_agent(0.6, kinds.REMEDY_REQUESTED, action="replace", detail={"way": "runtime", "host": "ip-10-1-0-12"}),
    of_agent(2, kinds.HANDED_OVER, duration_s=0.8, detail={"rank": 1, "step": 12}),
    job(2.1, kinds.JOB_RESUMED, 12, nodes=f"i-1,{SPARE}"),
    of_agent(2.2, kinds.REMEDY_REQUESTED, action="replace", detail={"way": "slurm", "host": "ip-10-1-0-12"}),
    at(2.5, kinds.NODE_REPLACING, action="replace", detail={"replacement": NEW}),
    job(4, kinds.JOB_PROGRESS, 14),
    replaced(20),
    at(25, kinds.SPARE_READY, "job", node=NEW, job="7"),
)


def test_a_hand_over_and_a_replacement_are_one_incident_with_all_its_seconds() -> None:
    incident = only(*HANDED_OVER)

    assert (incident.id, incident.fault, incident.code, incident.host) == ("a-1", "gpu-lost", 79, "ip-10-1-0-12")
    assert (incident.signal_s, incident.noticed_after_s) == (0.2, 0.5)
    assert (incident.resumed_after_s, incident.restored_after_s, incident.at_strength_after_s) == (2.0, 20.0, 25.0)
    assert (incident.job, incident.replacement, incident.state) == ("7", NEW, State.REPAIRED)
    assert (incident.steps_lost, incident.steps_redone, incident.stopped_s) == (0, 0, 0.8)
    assert [(step.remedy, step.way, step.outcome) for step in incident.remedies] == [
        ("replace", "runtime", "done"),
        ("replace", "slurm", "done"),
    ]
    assert [sighting.text for sighting in incident.evidence] == ["NVRM: Xid 79"]


def test_a_verdict_begins_an_incident_and_its_own_seconds_are_then_unknown() -> None:
    incident = only(verdict(0))

    assert (incident.id, incident.state, incident.start_ns) == ("a-1", State.OPEN, START_NS)
    assert (incident.signal_s, incident.noticed_after_s, incident.restored_after_s) == (None, None, None)


def test_an_incident_that_nobody_injected_begins_with_its_first_sign_where_the_agent_tells_of_it() -> None:
    incident = only(verdict(1, detail={"signal_ns": START_NS}))

    assert (incident.start_ns, incident.noticed_after_s, incident.signal_s) == (START_NS, 1.0, None)


def test_the_last_word_on_an_incident_counts_and_its_evidence_is_kept_once() -> None:
    incident = only(
        verdict(0, fault="ecc-rate", remedy="none", evidence="one\ntwo"),
        verdict(1, fault="ecc-rate", remedy="reboot", evidence="two\nthree", detail={"when": "boundary"}),
    )

    assert (incident.remedy, incident.when, incident.state) == ("reboot", "boundary", State.WAITING)
    assert [sighting.text for sighting in incident.evidence] == ["one", "two", "three"]


def test_a_withdrawn_verdict_closes_its_incident_without_a_repair() -> None:
    incident = only(verdict(0), of_agent(5, kinds.VERDICT_WITHDRAWN, evidence="it answers again"))

    assert (incident.state, incident.is_open, incident.restored_ns, incident.strong_ns) == (
        State.WITHDRAWN,
        False,
        None,
        None,
    )


def test_a_verdict_after_its_withdrawal_opens_the_incident_again() -> None:
    assert only(verdict(0), of_agent(5, kinds.VERDICT_WITHDRAWN), verdict(9)).state is State.OPEN


def test_a_repair_that_was_under_way_when_the_verdict_was_withdrawn_is_a_repair() -> None:
    incident = only(
        verdict(0),
        of_agent(1, kinds.REMEDY_REQUESTED, action="replace", detail={"way": "slurm"}),
        of_agent(2, kinds.VERDICT_WITHDRAWN),
        replaced(9),
    )

    assert (incident.state, incident.restored_after_s) == (State.REPAIRED, 9.0)


def test_a_verdict_that_asks_for_nothing_is_noted_and_takes_no_other_fault_to_itself() -> None:
    noted, lost = told(verdict(0, fault="nvlink-blip", remedy="none"), at(60, kinds.NODE_LOST, fault="instance-lost"))

    assert (noted.state, noted.is_open, noted.end_ns) == (State.NOTED, False, START_NS)
    assert (lost.fault, lost.state) == ("instance-lost", State.OPEN)


def test_a_refused_remedy_waits_for_a_person_and_says_so_once() -> None:
    refusal = {"action": "replace", "evidence": "breaker is open: 1 of 10 nodes within the hour"}
    incident = only(
        verdict(0), of_agent(1, kinds.REMEDY_REFUSED, **refusal), of_agent(31, kinds.REMEDY_REFUSED, **refusal)
    )

    assert (incident.state, incident.is_open, len(incident.remedies)) == (State.REFUSED, True, 1)
    assert incident.evidence[-1].text.startswith("breaker is open")


def test_a_refused_remedy_that_is_asked_for_later_is_a_repair() -> None:
    incident = only(
        verdict(0),
        of_agent(1, kinds.REMEDY_REFUSED, action="replace"),
        of_agent(3600, kinds.REMEDY_REQUESTED, action="replace", detail={"way": "api"}),
    )

    assert (incident.state, incident.asked_ns) == (State.REPAIRING, START_NS + 3600 * 10**9)


def test_a_fault_that_waits_for_its_boundary_is_not_ended_by_a_job_that_goes_on_with_its_node() -> None:
    waits = verdict(0, fault="remap-pending", remedy="reset-gpu", detail={"when": "boundary"})
    started = job(-10, kinds.JOB_STARTED, 0, nodes=f"i-1,{NODE}")
    incident = only(started, waits, job(5, kinds.JOB_RESUMED, 4, nodes=f"i-2,{NODE}"))

    assert (incident.state, incident.resumed_ns) == (State.WAITING, None)


def test_two_faults_of_one_node_are_both_repaired_by_its_replacement() -> None:
    incidents = told(verdict(0), verdict(1, "a-2", fault="mount-stalled"), replaced(30))

    assert [(each.id, each.state) for each in incidents] == [("a-1", State.REPAIRED), ("a-2", State.REPAIRED)]


def test_two_nodes_at_once_are_at_full_strength_when_both_are_back() -> None:
    other = "i-0000000000000000d"
    first, second = told(
        at(0, kinds.NODE_LOST),
        at(1, kinds.NODE_LOST, node=other),
        replaced(10),
        replaced(40, old=other, new="i-0000000000000000e"),
    )

    assert (first.restored_after_s, first.at_strength_after_s) == (10.0, 40.0)
    assert (second.restored_after_s, second.at_strength_after_s) == (39.0, 39.0)


def test_of_two_nodes_at_once_either_may_come_back_as_the_spare() -> None:
    other, second_new = "i-0000000000000000d", "i-0000000000000000e"
    first, second = told(
        job(-10, kinds.JOB_STARTED, 0, nodes=f"i-1,{NODE},{other}"),
        at(0, kinds.NODE_LOST),
        at(0.5, kinds.NODE_LOST, node=other),
        job(3, kinds.JOB_RESUMED, 12, nodes=f"i-1,{SPARE}"),
        replaced(10),
        replaced(12, old=other, new=second_new),
        at(14, kinds.SPARE_READY, "job", node=second_new, job="7"),
        job(20, kinds.JOB_PROGRESS, 40),
    )

    assert (first.at_strength_after_s, second.at_strength_after_s) == (14.0, 13.5)


def test_a_job_without_a_spare_is_at_full_strength_once_it_trains_again() -> None:
    """The first of two took the only one, so that the second waited for a node, and the other node is the spare."""
    other, second_new = "i-0000000000000000d", "i-0000000000000000e"
    first, second = told(
        job(-10, kinds.JOB_STARTED, 0, nodes=f"i-1,{NODE},{other}"),
        at(0, kinds.NODE_LOST),
        job(1, kinds.JOB_RESUMED, 12, nodes=f"i-1,{SPARE},{other}"),
        at(3, kinds.NODE_LOST, node=other),
        replaced(10),
        replaced(12, old=other, new=second_new),
        job(30, kinds.JOB_RESUMED, 14, nodes=f"i-1,{SPARE},{NEW}"),
        at(33, kinds.SPARE_READY, "job", node=second_new, job="7"),
        job(40, kinds.JOB_PROGRESS, 40),
    )

    assert (first.at_strength_after_s, second.at_strength_after_s) == (33.0, 30.0)
    assert second.resumed_after_s == 27.0


def test_a_spare_that_is_needed_again_before_it_is_warm_is_made_up_for_by_the_next_node_that_comes_back() -> None:
    other = "i-0000000000000000d"
    first, second = told(
        job(-10, kinds.JOB_STARTED, 0, nodes=f"i-1,{NODE},{other}"),
        at(0, kinds.NODE_LOST),
        job(1, kinds.JOB_RESUMED, 12, nodes=f"i-1,{SPARE},{other}"),
        replaced(10),
        at(12, kinds.NODE_LOST, node=other),
        job(14, kinds.JOB_RESUMED, 14, nodes=f"i-1,{SPARE},{NEW}"),
        replaced(20, old=other, new="i-0000000000000000e"),
        at(25, kinds.SPARE_READY, "job", node="i-0000000000000000e", job="7"),
        job(40, kinds.JOB_PROGRESS, 40),
    )

    assert (first.at_strength_after_s, second.at_strength_after_s) == (25.0, 13.0)


def test_full_strength_is_unknown_while_another_node_is_missing() -> None:
    first, _ = told(at(0, kinds.NODE_LOST), at(1, kinds.NODE_LOST, node="i-0000000000000000d"), replaced(10))

    assert first.strong_ns is None


def test_a_fault_on_the_replacement_is_repaired_with_the_node_that_it_replaces() -> None:
    last = "i-0000000000000000e"
    incidents = told(
        at(0, kinds.NODE_LOST),
        at(1, kinds.NODE_REPLACING, detail={"replacement": NEW}),
        at(3, kinds.NODE_FAILED, node=NEW, fault="lifecycle-failed"),
        at(4, kinds.NODE_REPLACING, node=NEW, detail={"replacement": last}),
        replaced(9, old=NEW, new=last),
    )

    assert [(each.node, each.replacement, each.state) for each in incidents] == [
        (NODE, last, State.REPAIRED),
        (NEW, last, State.REPAIRED),
    ]


def test_another_fault_injected_into_a_node_that_is_being_replaced_is_an_incident_of_its_own() -> None:
    incidents = told(
        at(0, kinds.FAULT_INJECTED, "cli", fault="xid-79"),
        verdict(0.5, detail={"code": 79}),
        at(1, kinds.NODE_REPLACING, detail={"replacement": NEW}),
        at(2, kinds.FAULT_INJECTED, "cli", fault="stalled-mount"),
        replaced(10),
    )

    assert [(each.fault, each.state) for each in incidents] == [
        ("gpu-lost", State.REPAIRED),
        ("stalled-mount", State.REPAIRED),
    ]


def test_each_verdict_joins_the_injection_of_its_fault() -> None:
    first, second = told(
        at(0, kinds.FAULT_INJECTED, "cli", fault="xid-79"),
        at(1, kinds.FAULT_INJECTED, "cli", fault="stalled-mount"),
        verdict(2, "a-2", fault="stalled-mount"),
        verdict(3, "a-1", detail={"code": 79}),
    )

    assert [(each.id, each.noticed_after_s) for each in (first, second)] == [("a-1", 3.0), ("a-2", 1.0)]


def test_an_injection_that_the_agent_takes_for_part_of_an_open_incident_is_none_of_its_own() -> None:
    incident = only(
        at(0, kinds.FAULT_INJECTED, "cli", fault="xid-119"),
        verdict(0.5, fault="gpu-firmware-error", remedy="reboot", detail={"code": 119}),
        at(5, kinds.FAULT_INJECTED, "cli", fault="xid-79"),
        verdict(5.5, detail={"code": 79}),
    )

    assert (incident.id, incident.fault, incident.remedy, len(incident.names)) == ("a-1", "gpu-lost", "replace", 3)


def test_a_reboot_that_did_not_help_opens_the_incident_again() -> None:
    incident = only(
        verdict(0, remedy="reboot"),
        at(5, kinds.NODE_REBOOTING),
        at(9, kinds.NODE_REBOOTED),
        verdict(12, remedy="replace"),
    )

    assert (incident.state, incident.remedy) == (State.REPAIRING, "replace")
    assert [(step.remedy, step.way, step.outcome) for step in incident.remedies] == [
        ("reboot", "control-plane", "done")
    ]


def test_a_node_that_is_deleted_ends_its_incidents() -> None:
    assert only(verdict(0), at(9, kinds.NODE_DELETED)).state is State.REMOVED


def test_an_id_made_of_its_beginning_stays_a_name_when_the_agent_gives_another() -> None:
    injected = at(0, kinds.FAULT_INJECTED, "cli", fault="xid-79")
    before, after = only(injected), only(injected, verdict(1, detail={"code": 79}))

    assert after.id == "a-1"
    assert before.id in after.names


def test_steps_that_were_thrown_away_are_lost_and_then_done_again() -> None:
    incident = only(
        job(-10, kinds.JOB_STARTED, 0, nodes=NODE),
        job(-5, kinds.JOB_PROGRESS, 5),
        job(0, kinds.JOB_PROGRESS, 10),
        at(1, kinds.NODE_LOST),
        replaced(5),
        job(20, kinds.JOB_RESUMED, 6, nodes=NEW),
        job(22, kinds.JOB_PROGRESS, 8),
    )

    assert (incident.steps_lost, incident.steps_redone) == (4, 2)
    assert (incident.stopped_s, incident.thrown_away_s) == (19.0, 4.0)


def test_a_job_that_still_waits_is_named_and_its_seconds_are_unknown() -> None:
    incident = only(job(-10, kinds.JOB_STARTED, 0, nodes=f"i-1,{NODE}"), at(0, kinds.NODE_LOST))

    assert (incident.job, incident.job_nodes, incident.resumed_ns) == ("7", ("i-0000000000000000a", "i-1"), None)


_KINDS = st.sampled_from(sorted(value for name, value in vars(kinds).items() if name.isupper()))
_NODES = st.sampled_from(["", "n1", "n2", "n3", "n4"])
_DETAILS = st.fixed_dictionaries(
    {},
    optional={
        "incident": st.sampled_from(["a", "b", "c"]),
        "replaces": _NODES,
        "replacement": _NODES,
        "nodes": st.sampled_from(["n1", "n1,n2", "n2,n3", "n4", ""]),
        "step": st.integers(0, 30),
        "code": st.sampled_from([45, 79]),
        "when": st.sampled_from(["now", "boundary", "later"]),
        "severity": st.sampled_from(["process", "device", "node"]),
        "lost_steps": st.integers(0, 3),
        "signal_ns": st.integers(0, 40 * 10**9),
        "way": st.sampled_from(["runtime", "slurm"]),
    },
)
_EVENTS = st.builds(
    Event,
    time_ns=st.integers(0, 40).map(lambda seconds: seconds * 10**9),
    source=st.sampled_from(["control-plane", "agent", "job", "cli"]),
    kind=_KINDS,
    node=_NODES,
    job=st.sampled_from(["", "1", "2"]),
    fault=st.sampled_from(["", "rank-died", "instance-lost", "xid-79"]),
    action=st.sampled_from(["", "none", "reboot", "replace"]),
    duration_s=st.none() | st.floats(0, 10),
    detail=_DETAILS,
)


@given(st.lists(_EVENTS, max_size=25), st.randoms(use_true_random=False))
def test_order_and_repeats_change_no_incident(events: list[Event], random: Any) -> None:
    shuffled = [*events, *events[::2]]
    random.shuffle(shuffled)

    assert timeline(shuffled).incidents == timeline(events).incidents


@given(st.lists(_EVENTS, max_size=25), st.integers(0, 25))
def test_an_id_that_was_ever_shown_still_names_an_incident_of_its_node(events: list[Event], known: int) -> None:
    names = {(name, each.node) for each in timeline(events).incidents for name in each.names}

    assert {(each.id, each.node) for each in timeline(events[:known]).incidents} <= names


@given(st.lists(_EVENTS, max_size=25))
def test_no_incident_counts_backwards_or_ends_before_it_begins(events: list[Event]) -> None:
    for each in timeline(events).incidents:
        counted = (each.signal_s, each.noticed_after_s, each.restored_after_s, each.resumed_after_s)
        assert all(
            seconds >= 0 for seconds in (*counted, each.at_strength_after_s, each.stopped_s) if seconds is not None
        )
        assert each.id == each.names[0]
        assert each.end_ns is None or each.end_ns >= each.start_ns
        if each.strong_ns is not None and each.restored_ns is not None:
            assert each.strong_ns >= each.restored_ns
        if each.steps_lost is not None and each.steps_redone is not None:
            assert 0 <= each.steps_redone <= each.steps_lost


@pytest.mark.parametrize("missing", range(len(HANDED_OVER)))
def test_any_single_event_of_a_hand_over_may_be_missing(missing: int) -> None:
    events = list(HANDED_OVER)
    del events[missing]

    (incident,) = told(*events)
    assert incident.fault in ("gpu-lost", "xid-79")


def test_a_job_that_reports_nothing_is_the_one_that_slurm_had_on_the_node() -> None:
    incident = only(
        at(0, kinds.NODE_LOST, fault="instance-lost", action="replace"),
        at(0.1, kinds.NODE_REPLACING, action="replace", detail={"replacement": NEW, "jobs": "7"}),
        replaced(20),
    )
    assert (incident.job, incident.slurm_jobs, incident.reported_by_job) == ("", "7", ())
