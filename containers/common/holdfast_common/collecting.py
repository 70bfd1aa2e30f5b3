"""
Whose an event is, decided by what collects it and never by the line. Pure.

The log of jobs can be written by every user of a node, so whatever it holds is a job's, of that node, and not of the
future. The health agent and the local control plane collect by the same rules; a reader knows the log by its stream.
"""

from dataclasses import replace

from holdfast_common.events import Event
from holdfast_common.log import stream_of_jobs
from holdfast_common.schema import EventError

NO_EVENT = "[holdfast] no event in the log of jobs"
"""Before a line that is none, so that it is no JSON and matches no filter, however it was written."""
AHEAD_NS = 300_000_000_000
"""A clock of a node is not quite the collector's."""
_OWN_STREAMS = {"control-plane": ("control-plane",), "cli": ("cli",)}
_OF_A_NODE = ("agent", "lifecycle", "job")


def of_job(line: str, *, cluster: str, node: str, now_ns: int) -> str:
    """
    A line of a log of jobs as it is shipped.

    Args:
        cluster: Whose log group it is put into. Empty: not known, left as it is written.
        node: Instance whose log it is. Empty: not known, left as it is written.
        now_ns: By the collector's clock; an event that is dated later is dated so.
    """
    try:
        event = Event.from_json(line)
    except EventError:
        return f"{NO_EVENT}: {line}"
    time_ns = event.time_ns if event.time_ns <= now_ns + AHEAD_NS else now_ns
    return replace(
        event, source="job", time_ns=time_ns, cluster=cluster or event.cluster, node=node or event.node
    ).to_json()


def is_of_stream(event: Event, stream: str) -> bool:
    """Return True if the source that an event has is one whose events are put into that stream."""
    if stream.endswith(stream_of_jobs("")):
        return event.source == "job"
    return event.source in _OWN_STREAMS.get(stream, _OF_A_NODE)
