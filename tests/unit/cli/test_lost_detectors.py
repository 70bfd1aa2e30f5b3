"""Which detectors are lost now: from events, and on the status of a cluster."""

from typing import Any

from holdfast.cli.deployed import lost_on
from holdfast_common import Event, kinds, lost_detectors


def event(second: int, kind: str, node: str = "i-1", *, source: str = "agent", **detail: Any) -> Event:
    return Event(time_ns=second * 10**9, source=source, kind=kind, node=node, evidence="why", detail=detail)


def lost(*events: Event) -> list[tuple[str, str, str]]:
    return [(one.node, one.detector, one.part) for one in lost_detectors(events)]


def test_a_loss_lasts_until_the_same_part_of_the_same_node_is_back() -> None:
    told = [
        event(1, kinds.DETECTOR_LOST, detector="mounts", part="/fsx"),
        event(2, kinds.DETECTOR_LOST, detector="mounts", part="/home"),
        event(3, kinds.DETECTOR_LOST, "i-2", detector="mounts", part="/fsx"),
        event(4, kinds.DETECTOR_BACK, detector="mounts", part="/fsx"),
    ]
    assert lost(*told[:3]) == [("i-1", "mounts", "/fsx"), ("i-1", "mounts", "/home"), ("i-2", "mounts", "/fsx")]
    assert lost(*told) == [("i-1", "mounts", "/home"), ("i-2", "mounts", "/fsx")]


def test_a_new_agent_a_replacement_and_a_deletion_end_it() -> None:
    told = event(1, kinds.DETECTOR_LOST, detector="nvml")
    assert lost(told, event(2, kinds.AGENT_STARTED)) == []
    assert lost(told, event(2, kinds.AGENT_STARTED, "i-2")) == [("i-1", "nvml", "")]
    assert lost(told, event(2, kinds.NODE_DELETED, source="control-plane")) == []
    assert lost(told, event(2, kinds.NODE_REPLACED, "i-9", source="control-plane", replaces="i-1")) == []
    assert lost(told, event(2, kinds.NODE_REPLACED, "i-9", source="control-plane", replaces="i-2")) == [
        ("i-1", "nvml", "")
    ]


def test_a_job_cannot_say_so() -> None:
    assert lost(event(1, kinds.DETECTOR_LOST, source="job", detector="nvml")) == []


def test_the_status_names_those_of_nodes_that_exist() -> None:
    nodes = [{"InstanceId": "i-1", "PrivateDnsHostname": "ip-10-1-0-1", "PrivatePrimaryIp": "10.1.0.1"}]
    events = [
        event(2, kinds.DETECTOR_LOST, "i-2", detector="nvml"),
        event(1, kinds.DETECTOR_LOST, detector="kernel-log"),
    ]
    (found,) = lost_on(nodes, events)
    assert (found.node, found.host, found.detector, found.evidence) == ("i-1", "ip-10-1-0-1", "kernel-log", "why")
