"""Event logs as a cluster writes them, from rates and times that a test knows."""

import numpy as np

from holdfast_common import Event, kinds

HOUR_NS = 3_600_000_000_000
REPLACE_S, RESUME_S = 920.0, 1300.0
SPREAD = 0.3
SKEW = float(np.exp(SPREAD**2 / 2))
"""Mean by median of the times of a stage."""


def log_of(*, rate: float, instances: int, hours: float, seed: int) -> list[Event]:
    """
    What a cluster writes whose instances fail at a rate, and whose stages take log-normal times around a median.

    A lost instance is replaced after ``REPLACE_S``, and its job trains again after another ``RESUME_S``.
    """
    rng = np.random.default_rng(seed)
    events = [
        Event(time_ns=0, source="control-plane", kind=kinds.NODE_IN_SERVICE, node=f"i-{number}")
        for number in range(instances)
    ]
    nodes = [f"i-{number}" for number in range(instances)]
    events.append(job_event(kinds.JOB_STARTED, 0, step=0, nodes=nodes))
    now, count = 0.0, 0
    while (now := now + float(rng.exponential(1 / (rate * instances)))) < hours:
        count += 1
        place = int(rng.integers(instances))
        old, nodes[place] = nodes[place], f"i-{instances + count}"
        lost_ns = int(now * HOUR_NS)
        replaced_ns = lost_ns + int(1e9 * REPLACE_S * rng.lognormal(0, SPREAD))
        resumed_ns = replaced_ns + int(1e9 * RESUME_S * rng.lognormal(0, SPREAD))
        events.append(Event(time_ns=lost_ns, source="control-plane", kind=kinds.NODE_LOST, node=old))
        new, detail = nodes[place], {"replaces": old}
        replaced = Event(time_ns=replaced_ns, source="control-plane", kind=kinds.NODE_REPLACED, node=new, detail=detail)
        events.append(replaced)
        events.append(job_event(kinds.JOB_RESUMED, resumed_ns, step=count, nodes=nodes))
        now = resumed_ns / HOUR_NS
    end_ns = max(int(hours * HOUR_NS), events[-1].time_ns)
    return [*events, job_event(kinds.JOB_PROGRESS, end_ns, step=count + 1, nodes=nodes)]


def job_event(kind: str, time_ns: int, *, step: int, nodes: list[str]) -> Event:
    return Event(time_ns=time_ns, source="job", kind=kind, job="1", detail={"step": step, "nodes": ",".join(nodes)})
