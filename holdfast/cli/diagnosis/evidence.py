"""Evidence of a job, from launchers, /proc, Slurm, Kubernetes, its output and its events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.cli.diagnosis.stacks import Frame


@dataclass(frozen=True, kw_only=True)
class Process:
    pid: int
    name: str
    states: str
    """State in /proc at each look, such as "RRS"."""
    waits_in: str = ""
    """Function of the kernel (wchan); empty or 0 while it runs."""
    cpu: float = 0.0
    """Cores used between the looks."""
    moved_bytes: int = 0
    """Read and written between the looks."""

    @property
    def is_stopped(self) -> bool:
        return bool(self.states) and set(self.states[-2:]) <= {"T", "t"}

    @property
    def is_held(self) -> bool:
        """True if the kernel held it at each look, and it moved nothing."""
        return bool(self.states) and set(self.states) == {"D"} and not self.moved_bytes and self.cpu < HELD_CPU

    @property
    def is_gone(self) -> bool:
        return self.states[-1:] in ("", "Z", "X")

    @property
    def computes(self) -> bool:
        """True for a process with a core of its own, or that waits for one at each look on a busy machine."""
        return self.cpu >= BUSY_CPU or (len(self.states) > 1 and set(self.states) == {"R"})

    @property
    def works(self) -> bool:
        return self.computes or self.moved_bytes >= MOVING_BYTES


HELD_CPU = 0.05
BUSY_CPU = 0.5
MOVING_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Rank:
    """
    A rank of the job.

    Args:
        phase: Of the launcher; empty without one.
        step: Finished updates; None without a launcher.
        silent_s: Since its last report; None without a launcher.
        stack: Of its main thread, innermost first.
        no_stack: Why there is none.
        asked: Whether the process itself was asked for its stack and did not answer.
    """

    rank: int
    node: str
    process: Process
    phase: str = ""
    step: int | None = None
    silent_s: float | None = None
    workers: Sequence[Process] = ()
    stack: Sequence[Frame] = ()
    no_stack: str = ""
    asked: bool = False

    @property
    def name(self) -> str:
        return f"rank {self.rank} on {self.node} (pid {self.process.pid})"


@dataclass(frozen=True, kw_only=True)
class Pace:
    """
    Steps of this attempt.

    Args:
        usual_s: Of one step; None before two reports.
        longest_s: Of the time between two reports, without the present one.
        age_s: Since the last finished step, or since the beginning if none is finished; None if unknown.
        shape: Such as "sudden: ..."; empty if too little is known.
        is_first: Whether no step of this attempt is finished.
        by_output: Whether lines of output stand for steps, since none are reported.
    """

    step: int | None = None
    usual_s: float | None = None
    longest_s: float | None = None
    age_s: float | None = None
    shape: str = ""
    is_first: bool = False
    by_output: bool = False


@dataclass(frozen=True, kw_only=True)
class Change:
    at_s: float
    text: str


@dataclass(frozen=True, kw_only=True)
class FailureSeen:
    """Explicit error: first traceback, or a line that names one."""

    text: str
    rank: str = ""
    node: str = ""
    lines: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Output:
    """End of the job's output; ``age_s``: since its last write; ``every_s``: mean time between lines before it."""

    lines: Sequence[str] = ()
    age_s: float | None = None
    every_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class DrainedNode:
    node: str
    state: str
    reason: str
    """In words, with Slurm's own."""
    by: str = ""


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Job that has nodes of the partition; ``ends_s``: seconds until its time limit, None without one."""

    job: str
    nodes: int
    ends_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class PendingJob:
    """
    Job or pod that waits.

    Args:
        name: Slurm's or Kubernetes' own, such as Resources or ErrImagePull.
        words: Reason in words.
        drained: Nodes that it could use and that take no job.
        usable: Nodes that it could use and that take jobs; None if unknown.
        requested: Nodes that it requests; None if unknown.
        starts_s: Seconds until the expected start; None if unknown.
        place: Pod, where it is one.
        fix: Command that ends the reason; empty if unknown.
    """

    name: str
    words: str
    drained: Sequence[DrainedNode] = ()
    holders: Sequence[Holder] = ()
    usable: int | None = None
    requested: int | None = None
    starts_s: float | None = None
    place: str = ""
    fix: str = ""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """
    All of it. What could not be read is in ``unseen``, a line each.

    Args:
        state: Of Slurm or Kubernetes.
        silent_nodes: Nodes that gave no answer, with the reason.
        world_size: Ranks that the job has; None if unknown.
        stopped_launchers: Node and pid of each that a signal stopped.
        full: Paths of full file systems, with their node.
        starting: What launchers without a first generation wait for; empty otherwise.
        recovering: Why the launchers form a new generation; empty if they do not.
        deadlines: Seconds of the launcher's deadlines: frozen, silence, progress; empty without a launcher.
        numbers: Lines, odd node beside a healthy one, by the odd node.
    """

    job: str
    state: str
    pending: Sequence[PendingJob] = ()
    drained: Sequence[DrainedNode] = ()
    ranks: Sequence[Rank] = ()
    world_size: int | None = None
    silent_nodes: Mapping[str, str] = field(default_factory=dict)
    pace: Pace = Pace()
    output: Output = Output()
    failures: Sequence[FailureSeen] = ()
    changes: Sequence[Change] = ()
    stopped_launchers: Sequence[tuple[str, int]] = ()
    full: Sequence[str] = ()
    starting: str = ""
    recovering: str = ""
    deadlines: Mapping[str, float] = field(default_factory=dict)
    numbers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    remedies: Sequence[str] = ()
    ends_s: float | None = None
    """Seconds until the job's time limit."""
    unseen: Sequence[str] = ()
