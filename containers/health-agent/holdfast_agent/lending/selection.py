"""Choice of tasks of elastic jobs to end. Pure."""

from collections.abc import Collection, Iterable, Mapping

from holdfast_agent.lending.queue import QueuedJob
from holdfast_common import Elastic, Waiting, shares

_WAITS_FOR_NODES = ("Resources", "Priority")


def tasks_to_end(
    queue: Iterable[QueuedJob], *, free: Mapping[str, int], notified: Collection[str] = (), served: Collection[str] = ()
) -> "tuple[tuple[str, ...], tuple[str, ...]]":
    """
    Return names of tasks to end, and of the jobs that wait for their nodes.

    Per partition. Slurm itself lends: pending tasks of an elastic job start where nodes idle.

    Args:
        notified: Tasks already notified: their nodes are on the way.
        served: Jobs that nodes were taken for before: if they did not start, they wait for something else.
    """
    jobs = tuple(queue)
    tasks: list[str] = []
    takers: set[str] = set()
    for partition in sorted({one.partition for one in jobs if one.sizes and one.state == "RUNNING"}):
        here = [one for one in jobs if partition in one.partition.split(",")]
        running: dict[str, list[QueuedJob]] = {}
        for one in here:
            if one.sizes and one.state == "RUNNING":
                running.setdefault(one.array, []).append(one)
        kept = {
            array: sorted((one for one in ranks if one.name not in notified), key=lambda one: one.task or 0)
            for array, ranks in running.items()
        }
        waiting = [one for one in _waiting(here, running) if one.job not in served]
        coming = sum(len(ranks) - len(kept[array]) for array, ranks in running.items())
        elastic = [
            Elastic(array, len(ranks), ranks[0].sizes, max(one.priority for one in ranks))
            for array, ranks in kept.items()
            if ranks
        ]
        has = shares(free=free.get(partition, 0) + coming, waiting=waiting, elastic=elastic)
        found = [one.name for array, ranks in kept.items() if ranks for one in ranks[has[array] :]]
        tasks += found
        if found:
            takers |= {one.job for one in waiting}
    return tuple(tasks), tuple(sorted(takers))


def _waiting(jobs: "list[QueuedJob]", running: Collection[str]) -> "list[Waiting]":
    pending = [one for one in jobs if one.state == "PENDING" and one.reason in _WAITS_FOR_NODES]
    found = [Waiting(one.name, one.nodes, one.priority) for one in pending if not one.sizes]
    begins = {one.array: one for one in pending if one.sizes and one.array not in running}
    return [*found, *(Waiting(array, min(one.sizes), one.priority) for array, one in begins.items())]
