"""Rehearsal of an elastic job: take nodes away, and give them back."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast.cli.deployed import Context, ask_for_size
from holdfast.cli.rehearsal.watching import Watch
from holdfast.cli.terminal import step

if TYPE_CHECKING:
    from holdfast_common import Event

TAKEN = 2
"""Nodes, or so many more or fewer as the sizes of the job allow."""


def take_and_give_back(context: Context, watch: Watch) -> None:
    """Resize the job to fewer nodes, let it train, and resize it back."""
    sizes = sizes_of(watch.events)
    most = sizes[-1]
    fewer = max((size for size in sizes if size <= most - TAKEN), default=sizes[0])
    for what, nodes in ((f"take {most - fewer} nodes of the job", fewer), ("give them back", most)):
        with step(what) as progress:
            ask_for_size(context, job=watch.job_id, nodes=nodes)
            if not watch.until(_trains_on(nodes), what=f"the job to train on {nodes} nodes", progress=progress):
                progress.update(f"the job ended before it trained on {nodes} nodes")
                return
            progress.update(f"{nodes} nodes, without a restart")


def sizes_of(events: "Sequence[Event]") -> tuple[int, ...]:
    """Allowed numbers of nodes, ascending; empty for a fixed size, or before the start."""
    return tuple(int(size) for size in _of_start(events, "sizes"))


def has_all_its_nodes(events: "Sequence[Event]") -> bool:
    """Return True if an elastic job trains at its largest size."""
    sizes = sizes_of(events)
    return bool(sizes) and _trains_on(sizes[-1])(events)


def _trains_on(nodes: int) -> "Callable[[Sequence[Event]], bool]":
    """Return True if the job has this number of nodes, and has made steps since."""

    def so(events: "Sequence[Event]") -> bool:
        from holdfast_common import kinds

        at = _start(events)
        later = (event.kind == kinds.JOB_PROGRESS for event in events[at + 1 :])
        return len(_of_start(events, "nodes")) == nodes and any(later)

    return so


def _of_start(events: "Sequence[Event]", name: str) -> list[str]:
    at = _start(events)
    return str(events[at].detail.get(name, "")).split(",") if at >= 0 and events[at].detail.get(name) else []


def _start(events: "Sequence[Event]") -> int:
    from holdfast_common import kinds

    starts = (kinds.JOB_STARTED, kinds.JOB_RESUMED)
    return max((at for at, event in enumerate(events) if event.kind in starts), default=-1)
