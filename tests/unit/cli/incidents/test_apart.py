"""Incidents that overlap, on one node and on several: whose a repair is, which are noted, and what is counted once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.views.incidents import Fleet, Price, rows_of
from holdfast.planner import calibrate
from holdfast_common import Event, Incident, State, kinds, timeline

NODE, OTHER, THIRD, NEW, NEWER = "i-a", "i-b", "i-c", "i-d", "i-e"
START_NS = 1_795_000_000_000_000_000
FLEET = Fleet(
    type_of_node=dict.fromkeys((NODE, OTHER, THIRD, NEW, NEWER), "ml.p5.48xlarge"), price=Price(for_all=3600.0)
)
"""A dollar per instance-second."""


def at(seconds: float, kind: str, source: str = "control-plane", *, node: str = NODE, **values: Any) -> Event:
    return Event(time_ns=START_NS + round(seconds * 1e9), source=source, kind=kind, node=node, **values)


def verdict(seconds: float, incident: str, remedy: str, *, node: str = NODE, fault: str = "gpu-lost") -> Event:
    detail = {"incident": incident, "severity": "device", "when": "now"}
    return at(seconds, kinds.VERDICT, "agent", node=node, fault=fault, action=remedy, detail=detail)


def asked(seconds: float, incident: str, remedy: str, *, node: str = NODE) -> Event:
    detail = {"incident": incident, "way": "slurm"}
    return at(seconds, kinds.REMEDY_REQUESTED, "agent", node=node, action=remedy, detail=detail)


def replacing(seconds: float, *, node: str = NODE, new: str = NEW) -> Event:
    return at(seconds, kinds.NODE_REPLACING, node=node, detail={"replacement": new})


def replaced(seconds: float, *, old: str = NODE, new: str = NEW) -> Event:
    return at(seconds, kinds.NODE_REPLACED, node=new, detail={"replaces": old})


def job(seconds: float, kind: str, step: int, *nodes: str) -> Event:
    detail: dict[str, Any] = {"step": step, **({"nodes": ",".join(nodes)} if nodes else {})}
    return at(seconds, kind, "job", node="", job="7", detail=detail)


def told(*events: Event) -> dict[str, Incident]:
    return {one.id: one for one in timeline(events).incidents}


def dollars(*events: Event) -> dict[str, float]:
    """What the cluster tells and what the job reports, together."""
    return {row.id: (row.cost_usd or 0.0) + (row.reported_cost_usd or 0.0) for _, row in rows_of(events, FLEET)}


def outcomes(incident: Incident) -> list[tuple[str, str]]:
    return [(step.remedy, step.outcome) for step in incident.remedies]


# --- noted


def test_what_asks_for_nothing_stays_noted_when_the_node_is_repaired_for_another_fault() -> None:
    found = told(
        verdict(0, "noted", "none", fault="nvlink-blip"),
        verdict(1, "grave", "replace"),
        asked(2, "grave", "replace"),
        replacing(3),
        replaced(60),
    )
    assert (found["noted"].state, found["noted"].remedies, found["noted"].restored_ns) == (State.NOTED, (), None)
    assert (found["noted"].out_ns, found["noted"].repaired_with) == (None, "")
    assert found["grave"].state is State.REPAIRED


@pytest.mark.parametrize("kind", [kinds.NODE_DELETED, kinds.CLUSTER_DELETED])
def test_what_asks_for_nothing_stays_noted_when_its_node_is_deleted(kind: str) -> None:
    found = told(verdict(0, "noted", "none"), at(5, kind))
    assert found["noted"].state is State.NOTED


def test_a_verdict_that_asks_for_nothing_any_more_is_noted_also_after_a_refusal() -> None:
    refused = at(1, kinds.REMEDY_REFUSED, "agent", action="replace", detail={"incident": "a", "why": "breaker"})
    found = told(verdict(0, "a", "replace"), refused, verdict(30, "a", "none"))
    assert (found["a"].state, found["a"].is_open) == (State.NOTED, False)


def test_a_repair_that_is_under_way_goes_on_when_its_verdict_asks_for_nothing_any_more() -> None:
    begun = (verdict(0, "a", "replace"), asked(1, "a", "replace"), replacing(2), verdict(3, "a", "none"))
    assert told(*begun)["a"].state is State.REPAIRING
    assert told(*begun, replaced(60))["a"].state is State.REPAIRED


# --- whose a repair is


def test_a_repair_is_in_the_incident_that_asked_for_it_and_the_other_ends_with_it() -> None:
    found = told(
        verdict(0, "waits", "reset-gpu", fault="remap-pending"),
        verdict(1, "asks", "replace"),
        asked(2, "asks", "replace"),
        replacing(3),
        replaced(60),
    )
    assert outcomes(found["asks"]) == [("replace", "done")]
    assert outcomes(found["waits"]) == []
    assert (found["asks"].repaired_with, found["waits"].repaired_with) == ("", "asks")
    assert [one.state for one in found.values()] == [State.REPAIRED] * 2
    assert found["waits"].replacement == NEW


def test_a_reboot_ends_no_fault_that_asks_for_a_replacement() -> None:
    found = told(
        verdict(0, "reboots", "reboot", fault="gpu-firmware-error"),
        asked(1, "reboots", "reboot"),
        verdict(2, "replaces", "replace"),
        at(3, kinds.NODE_REBOOTING),
        at(30, kinds.NODE_REBOOTED),
    )
    assert (found["reboots"].state, outcomes(found["reboots"])) == (State.REPAIRED, [("reboot", "done")])
    assert (found["replaces"].state, found["replaces"].restored_ns, outcomes(found["replaces"])) == (
        State.OPEN,
        None,
        [],
    )


def test_a_reboot_that_a_fault_of_a_replacement_asked_for_is_its_own() -> None:
    found = told(
        verdict(0, "a", "replace"), asked(1, "a", "reboot"), at(2, kinds.NODE_REBOOTING), at(9, kinds.NODE_REBOOTED)
    )
    assert (found["a"].state, outcomes(found["a"])) == (State.REPAIRED, [("reboot", "done")])


def test_a_repair_that_nobody_asked_for_belongs_to_the_loss_that_began_it() -> None:
    found = told(
        verdict(0, "a", "replace", fault="mount-stalled"),
        at(5, kinds.NODE_LOST, node=OTHER, fault="instance-lost"),
        replacing(6, node=OTHER),
        replaced(30, old=OTHER),
    )
    (lost,) = [one for one in found.values() if one.node == OTHER]
    assert (outcomes(lost), found["a"].state, outcomes(found["a"])) == ([("replace", "done")], State.OPEN, [])


# --- what it took


STARTED = (job(-10, kinds.JOB_STARTED, 0, NODE, OTHER, THIRD), job(0, kinds.JOB_PROGRESS, 10))


def test_two_faults_of_one_node_cost_what_its_one_repair_took() -> None:
    first = (*STARTED, verdict(0, "a", "replace"), asked(1, "a", "replace"))
    after = (replacing(3), job(20, kinds.JOB_RESUMED, 10, OTHER, THIRD, NEWER), replaced(60))
    alone = dollars(*first, *after)
    both = dollars(*first, verdict(2, "b", "replace", fault="mount-stalled"), *after)
    assert alone == {"a": pytest.approx(2 * 20 + 57)}
    assert both == {"a": alone["a"], "b": 0.0}


def test_two_nodes_of_one_job_count_the_time_that_it_stood_still_once() -> None:
    found = dollars(
        *STARTED,
        verdict(0, "a", "replace"),
        verdict(5, "b", "replace", node=OTHER),
        asked(6, "a", "replace"),
        asked(6, "b", "replace", node=OTHER),
        replacing(7),
        replacing(7, node=OTHER, new=NEWER),
        job(20, kinds.JOB_RESUMED, 10, THIRD),
        replaced(60),
        replaced(80, old=OTHER, new=NEWER),
    )
    assert found == {"a": pytest.approx(53 + 7 + 20), "b": pytest.approx(73 + 2)}
    assert sum(found.values()) == pytest.approx(80 + 75)


def test_incidents_that_do_not_overlap_count_all_of_their_own() -> None:
    found = dollars(
        *STARTED,
        verdict(0, "a", "replace"),
        asked(1, "a", "replace"),
        replacing(2),
        replaced(10),
        job(20, kinds.JOB_RESUMED, 10, NEW, OTHER, THIRD),
        job(100, kinds.JOB_PROGRESS, 20),
        verdict(100, "b", "replace", node=OTHER),
        asked(101, "b", "replace", node=OTHER),
        replacing(102, node=OTHER, new=NEWER),
        replaced(110, old=OTHER, new=NEWER),
        job(130, kinds.JOB_RESUMED, 20, NEW, NEWER, THIRD),
    )
    assert found == {"a": pytest.approx(2 * 20 + 8), "b": pytest.approx(2 * 30 + 8)}


MOMENTS = st.lists(
    st.tuples(
        st.floats(0, 200),
        st.sampled_from(
            ("verdict", "none", "asked", "replacing", "replaced", "rebooting", "rebooted", "lost", "resumed")
        ),
        st.sampled_from((NODE, OTHER)),
        st.sampled_from("ab"),
    ),
    max_size=14,
)


def moment(seconds: float, what: str, node: str, name: str) -> Event:
    of_job = job(seconds, kinds.JOB_RESUMED, int(seconds), NODE, OTHER, THIRD)
    return {
        "verdict": verdict(seconds, f"{node}-{name}", "replace", node=node),
        "none": verdict(seconds, f"{node}-{name}", "none", node=node),
        "asked": asked(seconds, f"{node}-{name}", "replace", node=node),
        "replacing": replacing(seconds, node=node),
        "replaced": replaced(seconds, old=node),
        "rebooting": at(seconds, kinds.NODE_REBOOTING, node=node),
        "rebooted": at(seconds, kinds.NODE_REBOOTED, node=node),
        "lost": at(seconds, kinds.NODE_LOST, node=node, fault="instance-lost"),
        "resumed": of_job,
    }[what]


@given(moments=MOMENTS)
def test_no_instance_is_counted_for_longer_than_there_was(moments: list[tuple[float, str, str, str]]) -> None:
    events = [*STARTED, *(moment(*one) for one in moments)]
    found = rows_of(events, FLEET)
    assert sum(row.cost_usd or 0.0 for _, row in found) <= 3 * 210 + 1e-6
    for incident, _ in found:
        assert incident.state is not State.NOTED or incident.restored_ns is None
        if incident.repaired_with:
            assert incident.repaired_with in {name for other, _ in found for name in other.names}


def test_the_planner_learns_one_replacement_from_two_faults_of_one_node() -> None:
    first = (*STARTED, verdict(0, "a", "replace"), asked(1, "a", "replace"))
    after = (replacing(3), replaced(60), job(80, kinds.JOB_RESUMED, 10, OTHER, THIRD, NEW))
    alone = calibrate([*first, *after])
    both = calibrate([*first, verdict(50, "b", "replace", fault="mount-stalled"), *after])
    assert both.stages["replace"] == alone.stages["replace"]
    assert both.stages["resume"] == alone.stages["resume"]
    assert alone.rate is not None
    assert both.rate is not None
    assert both.rate.failures == alone.rate.failures == 1
