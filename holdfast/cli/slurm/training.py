import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast_common import kinds

if TYPE_CHECKING:
    from holdfast_common import Event

NO_SPARE = "no spare until the job ends"
WAITS = "waits for a spare"


def training_of(job: str, events: "Sequence[Event]", *, now_ns: int | None = None) -> str:
    """
    Return step, loss, remaining time and missing nodes, as far as events have them.

    Args:
        job: Number, or that of an array with the task behind an underscore.
        events: In time order.
        now_ns: Default: the machine's clock.
    """
    own = [event for event in events if event.job and event.job == job.partition("_")[0].partition("[")[0]]
    parts = [text for text in (_progress(own, now_ns or time.time_ns()), _launchers(own), _spare(own)) if text]
    return "; ".join(parts)


def _progress(events: "Sequence[Event]", now_ns: int) -> str:
    steps = [event for event in events if "step" in event.detail and event.kind == kinds.JOB_PROGRESS]
    if not steps:
        return ""
    last = steps[-1]
    done, loss, total = last.detail["step"], last.detail.get("loss"), last.detail.get("steps")
    text = f"step {done}" + (f" of {total}" if total else "") + (f", loss {loss:.4g}" if loss is not None else "")
    first = steps[0]
    made = int(done) - int(first.detail["step"])
    if total and made > 0:
        left_s = (int(total) - int(done)) * (last.time_ns - first.time_ns) / made / 1e9
        text += f", ends in {_span(max(0.0, left_s - (now_ns - last.time_ns) / 1e9))}"
    return text


def _launchers(events: "Sequence[Event]") -> str:
    lost: dict[str, None] = {}
    for event in events:
        if event.kind in (kinds.JOB_STARTED, kinds.JOB_FINISHED, kinds.JOB_STOPPED):
            lost.clear()
        elif event.kind == kinds.LAUNCHER_LOST and "lost" in event.detail:
            lost[str(event.detail["lost"])] = None
        elif event.kind == kinds.SPARE_READY:
            lost.pop(str(event.detail.get("launcher")), None)
        elif event.kind == kinds.VIEW_COMMITTED:
            for launcher in str(event.detail.get("nodes", "")).split(","):
                lost.pop(launcher, None)
    if not lost:
        return ""
    return f"runs without launcher{'s' if len(lost) > 1 else ''} {', '.join(lost)}"


def _spare(events: "Sequence[Event]") -> str:
    for event in reversed(events):
        if event.kind in (kinds.SPARE_READY, kinds.JOB_FINISHED, kinds.JOB_STOPPED):
            return ""
        if event.kind == kinds.VIEW_COMMITTED:
            lacks = int(event.detail.get("spares", 0)) == 0
            return {"none": NO_SPARE, "expand": WAITS}.get(str(event.detail.get("spare", "")), "") if lacks else ""
    return ""


def _span(seconds: float) -> str:
    minutes, hours = divmod(int(seconds / 60), 60)[1], int(seconds / 3600)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min" if minutes else f"{seconds:.0f} s"
