"""One job from its events, in order of time: state, members, and a series of bounded length."""

from array import array
from dataclasses import dataclass, field

from holdfast_common import Event, JobReader, JobTimeline, detail_step, kinds

MOST_POINTS = 400
"""Of a series, after it was thinned out."""
SILENT_S, SILENT_STEPS = 60.0, 20.0
"""Longest time without a report, the latter in mean steps."""
RATE_OVER_S = 15.0
"""Time of the shown step rate: reports come every 2 s."""
BEHIND_NS = 5_000_000_000
MOMENT_NS = 250_000_000
"""Of two reports whose difference is no rate."""
_STARTS = frozenset((kinds.JOB_STARTED, kinds.JOB_RESUMED))
_REPORTS = frozenset((kinds.JOB_PROGRESS, kinds.CHECKPOINT_SAVED, kinds.JOB_FINISHED))
_TROUBLES = frozenset((kinds.RANK_LOST, kinds.LAUNCHER_LOST))


class Series:
    """Steps, loss and useful seconds by time; when it is full, every other point goes."""

    def __init__(self) -> None:
        self.times_ns, self.restarted = array("q"), array("b")
        self.steps, self.losses, self.useful_s = array("d"), array("d"), array("d")

    def add(self, time_ns: int, *, step: float, loss: float, useful_s: float, restarted: bool) -> None:
        if self.times_ns and time_ns == self.times_ns[-1] and not restarted:
            self._pop()
        self.times_ns.append(time_ns)
        self.steps.append(step)
        self.losses.append(loss)
        self.useful_s.append(useful_s)
        self.restarted.append(restarted)
        if len(self.times_ns) > 2 * MOST_POINTS:
            self._thin_out()

    def rates(self) -> list[float | None]:
        """
        Steps per second that led to each point; 0 for a restart from no later step.

        None for the first point, and within a moment of a start: its report is written when the first step is done.
        """
        return [None, *map(self._rate, range(1, len(self.times_ns)))]

    def _rate(self, place: int) -> float | None:
        base = place - 1
        while base and not self.restarted[base] and self.times_ns[place] - self.times_ns[base] < MOMENT_NS:
            base -= 1
        span_ns = self.times_ns[place] - self.times_ns[base]
        if span_ns < MOMENT_NS and not self.restarted[place]:
            return None
        return max(0.0, self.steps[place] - self.steps[base]) / (span_ns / 1e9) if span_ns else 0.0

    def _pop(self) -> None:
        for column in (self.times_ns, self.steps, self.losses, self.useful_s, self.restarted):
            column.pop()

    def _thin_out(self) -> None:
        """The first and the last stay; a restart is marked at the next point that stays."""
        last = len(self.times_ns) - 1
        kept = [*range(0, last, 2), last]
        marks = [bool(self.restarted[place] or (place and self.restarted[place - 1])) for place in kept]
        self.times_ns = array("q", [self.times_ns[place] for place in kept])
        self.steps = array("d", [self.steps[place] for place in kept])
        self.losses = array("d", [self.losses[place] for place in kept])
        self.useful_s = array("d", [self.useful_s[place] for place in kept])
        self.restarted = array("b", marks)


@dataclass
class JobState:
    job: str
    reader: JobReader = field(init=False)
    series: Series = field(default_factory=Series)
    step: float = 0.0
    steps: float | None = None
    """Of the whole job, if it reports them."""
    loss: float | None = None
    world_size: int | None = None
    nodes: tuple[str, ...] = ()
    """Instances with ranks, in the order of ranks."""
    launchers: dict[int, str] = field(default_factory=dict)
    """Instance of each launcher."""
    members: frozenset[int] = frozenset()
    """Launchers of the committed view."""
    seen_ns: int = 0
    started_ns: int = 0
    """Of the last attempt."""
    moved_ns: int = 0
    """Time of the last start or finished step."""
    began_ns: int | None = None
    ended_ns: int | None = None
    ended_by: str = ""
    """Kind of its last event; empty while it runs."""
    why: str = ""
    trouble_ns: int | None = None
    trouble: str = ""
    checkpoint_step: float | None = None

    def __post_init__(self) -> None:
        self.reader = JobReader(self.job)

    def add(self, event: Event) -> None:
        self.reader.add(event)
        kind = event.kind
        if event.source == "job":
            self.seen_ns = event.time_ns
            self._member(event)
        if kind in _STARTS:
            self._start(event)
        elif kind in _REPORTS:
            self._report(event)
        elif kind in _TROUBLES and self.began_ns is not None:
            self.trouble_ns, self.trouble = self.trouble_ns or event.time_ns, kind
        if kind in (kinds.JOB_FINISHED, kinds.JOB_STOPPED):
            self.ended_ns, self.ended_by, self.why = event.time_ns, kind, event.evidence
            self.trouble_ns = None
        if kind == kinds.CHECKPOINT_SAVED:
            self.checkpoint_step = detail_step(event)

    def _start(self, event: Event) -> None:
        step = detail_step(event) or 0.0
        names = tuple(name for name in str(event.detail.get("nodes", "")).split(",") if name)
        size = event.detail.get("world_size")
        self.began_ns = event.time_ns if self.began_ns is None else self.began_ns
        self.ended_ns, self.ended_by, self.why, self.trouble_ns = None, "", "", None
        self.nodes = names or self.nodes
        self.world_size = size if isinstance(size, int) else self.world_size
        self.step, self.started_ns, self.moved_ns = step, event.time_ns, event.time_ns
        self._point(event, restarted=True)

    def _report(self, event: Event) -> None:
        self.began_ns = event.time_ns if self.began_ns is None else self.began_ns
        step, loss, steps = detail_step(event), event.detail.get("loss"), event.detail.get("steps")
        self.step = self.step if step is None else step
        self.loss = float(loss) if isinstance(loss, int | float) else self.loss
        self.steps = float(steps) if isinstance(steps, int | float) else self.steps
        if not self.series.steps or self.step > self.series.steps[-1]:
            self.moved_ns, self.trouble_ns = event.time_ns, None
            self._point(event, restarted=False)

    def _point(self, event: Event, *, restarted: bool) -> None:
        loss = event.detail.get("loss")
        self.series.add(
            event.time_ns,
            step=self.step,
            loss=float(loss) if isinstance(loss, int | float) else float("nan"),
            useful_s=self.reader.productive_s(),
            restarted=restarted,
        )

    def _member(self, event: Event) -> None:
        launcher = event.detail.get("launcher")
        if isinstance(launcher, int) and event.node:
            self.launchers[launcher] = event.node
        if event.kind == kinds.VIEW_COMMITTED:
            names = str(event.detail.get("nodes", "")).split(",")
            self.members = frozenset(int(name) for name in names if name.isdecimal() and len(name) < 9)
        elif event.kind == kinds.SPARE_READY and isinstance(launcher, int):
            self.members |= {launcher}
        elif event.kind == kinds.LAUNCHER_LOST and isinstance(lost := event.detail.get("lost"), int):
            self.members -= {lost}

    @property
    def spares(self) -> tuple[str, ...]:
        """Instances of the view without ranks."""
        known = (self.launchers[one] for one in sorted(self.members) if one in self.launchers)
        return tuple(dict.fromkeys(node for node in known if node not in self.nodes))

    def timeline(self, latest_ns: int) -> JobTimeline | None:
        return self.reader.timeline(latest_ns)

    def rate(self) -> float | None:
        """Steps per second of the last seconds before its last report; None without two reports since a start."""
        times, steps = self.series.times_ns, self.series.steps
        last = len(times) - 1
        first = last
        while first > 0 and not self.series.restarted[first] and times[last] - times[first] < RATE_OVER_S * 1e9:
            first -= 1
        seconds = (times[last] - times[first]) / 1e9 if last > 0 else 0.0
        return (steps[last] - steps[first]) / seconds if seconds >= MOMENT_NS / 1e9 else None

    def is_behind(self, now_ns: int) -> bool:
        """Return True if no step has been reported for longer than usual."""
        times = self.series.times_ns
        usual_ns = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 0.0
        return not self.ended_by and now_ns - self.moved_ns > max(BEHIND_NS, 3 * usual_ns)

    def is_silent(self, now_ns: int) -> bool:
        """Return True if it reports nothing for long: it stands still, or was ended without a report."""
        rate = self.rate()
        least_s = max(SILENT_S, SILENT_STEPS / rate if rate else SILENT_S)
        return not self.ended_by and self.began_ns is not None and now_ns - self.seen_ns > least_s * 1e9
