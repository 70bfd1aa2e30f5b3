"""
Messages between a rank and its launcher: JSON lines on the socket of HOLDFAST_CONTROL_FD.

A rank that sends ``hello`` stays alive through faults of others: it receives ``leave``, answers ``ready`` and receives
the next ``view``. A script that sends nothing is restarted as a whole.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from holdfast_runtime.control.codec import Codec
from holdfast_runtime.membership import Snapshot, Source, State
from holdfast_runtime.patience import Where

Phase = Literal["start", "data", "forward", "backward", "vote", "update", "copy", "recover", "other", "between"]
Buildable = Literal["", "anywhere", "apart"]
"""Where a spare can make its model before it has a rank: nowhere, also beside ranks, only on a node without ranks."""


@dataclass(frozen=True)
class Hello:
    """The process is up and speaks this protocol."""

    pid: int


@dataclass(frozen=True)
class Ready:
    """The process has left all collectives and waits for a view."""

    committed_step: int
    """Optimizer updates that it has finished."""
    state: State
    digest: str | None = None
    """Of its state at committed_step."""
    port: int = 0
    """Where it sends and receives state, 1-65535."""
    snapshots: tuple[Snapshot, ...] = ()
    """Shards that it keeps in memory, its own among them."""
    checkpoint_step: int = -1
    """Newest complete checkpoint in storage that it has found; -1 without one, -2 before it has searched."""
    twins: tuple[int, ...] | None = None
    """Ranks whose state is the same as that of its rank. Default: all ranks, they are replicas."""
    prepared: bool = False
    """Whether it has all that the update after committed_step takes, and can do it alone."""
    reason: str = ""
    """Why it left; empty at its start."""
    planned: bool = False
    """Whether it left between two steps, as it was asked to by ``HandOver``."""
    part: int = -1
    """Number of the part of the state that it trains with, in an elastic sharded job."""
    buildable: Buildable = ""
    """Of a process that has made no model yet."""
    built: int = -1
    """The rank that it has made its model for without having one; -1 for any other process."""
    moves: bool = False
    """Whether that can become the model of another rank in place."""
    torn: str = ""
    """Reason of a torn state where the program did not raise in its update; empty otherwise."""


@dataclass(frozen=True)
class Cold:
    """A spare could not make its model, or not do a step with it: it is of no use any more."""

    reason: str


@dataclass(frozen=True)
class Progress:
    """Still alive: in this phase of the update that follows ``step`` finished ones. A few per step at most."""

    step: int
    phase: Phase
    loss: float | None = None
    """Mean over all ranks of the step that was just finished; None at any other moment, and where it is no number."""
    total: int = 0
    """Updates of the whole training; 0 while the program has asked for none."""


@dataclass(frozen=True)
class Fault:
    """A collective failed here. Sent at once, before ``ready``."""

    reason: str
    fatal: bool = False
    """Whether the job must end, because going on would hide damage."""


@dataclass(frozen=True)
class Raised:
    """
    The program raised an exception: nobody is lost, and trying again may not help. Sent at once.

    A process that can try again sends ``ready`` next. The launcher decides: it gives another view, or stops the process
    or the job.
    """

    step: int
    """Updates that were finished when the step began."""
    generation: int
    what: str
    """The exception and where it was raised, in one line."""
    traceback: str
    where: Where
    """A process that raised after the update of a step cannot do it again: it ends."""


@dataclass(frozen=True)
class Finished:
    """The training loop has ended; the process may go on and then ends with exit code 0."""

    committed_step: int


@dataclass(frozen=True)
class Leave:
    """Leave all collectives, close the groups, answer ``ready``. A view of this generation or of a later one comes."""

    generation: int
    reason: str


@dataclass(frozen=True)
class HandOver:
    """
    Leave between two steps, all ranks between the same two.

    Each rank says in its votes that it knows this. The first step that makes ``after_step`` or more finished ones, and
    in which all said so, is the last of this generation.
    """

    generation: int
    after_step: int


@dataclass(frozen=True)
class Build:
    """
    To a spare of a sharded job: make the model of this rank, and do a step alone that counts for nothing.

    Then it says ``ready`` once more, and waits for a view.
    """

    rank: int
    world_size: int
    step: int
    """Updates that the job has finished, about: the step is tried with the batch that follows them."""


@dataclass(frozen=True)
class Plan:
    """Source of the rank's state."""

    source: Source
    donors: tuple[int, ...] = ()
    """For a receiver: ranks that can give its state, the best first."""
    receivers: tuple[int, ...] = ()
    """For a donor: ranks that have it as their best."""
    lost_steps: int = 0
    """Updates that had been committed and are done again."""
    allowed: bool = True
    """Whether the job allows that loss; a view whose loss is not allowed is never sent."""
    cut: int = 0
    """Ranks that the state was divided among so far, where it is divided again."""
    parts: tuple[tuple[int, ...], ...] = ()
    """By rank of that size: who can give its part, numbered as hosts and ports are."""


@dataclass(frozen=True)
class View:
    """
    The place of this process in the next generation.

    Rank -1: another process has its rank now; it gives its state to those that ask, until it is stopped.
    """

    generation: int
    rank: int
    world_size: int
    resume_step: int
    """Updates that count: training goes on with the one that follows."""
    plan: Plan
    hosts: tuple[str, ...] = ()
    """Of each rank's process, by rank; then of those that leave."""
    ports: tuple[int, ...] = ()
    """Where each of them sends and receives state."""


@dataclass(frozen=True)
class Stop:
    """End now, with this exit code."""

    reason: str
    exit_code: int


@dataclass(frozen=True)
class Put:
    """An entry of the generation's store, for every rank."""

    generation: int
    key: str
    value: str
    """Base64."""


@dataclass(frozen=True)
class Change:
    """A change of an entry that must not race with another; answered by ``Changed``."""

    generation: int
    request: int
    key: str
    operation: Literal["add", "compare_set", "delete"]
    amount: int = 0
    """For add."""
    expected: str = ""
    """Base64, for compare_set; an absent entry equals an empty one."""
    desired: str = ""
    """Base64, for compare_set."""


@dataclass(frozen=True)
class Keys:
    """Entries of the generation's store, of some or of all ranks, as two columns."""

    generation: int
    keys: tuple[str, ...]
    values: tuple[str | None, ...]
    """Base64; None where the entry was deleted."""

    @staticmethod
    def of(generation: int, entries: Mapping[str, str | None]) -> "Keys":
        return Keys(generation, tuple(entries), tuple(entries.values()))

    @property
    def entries(self) -> Iterator[tuple[str, str | None]]:
        return zip(self.keys, self.values, strict=True)


@dataclass(frozen=True)
class Changed:
    """The entry after a change."""

    request: int
    value: str
    """Base64."""


@dataclass(frozen=True)
class Survives:
    """Losses that the job's state survives from now on."""

    sentence: str
    """For people: "any one node may be lost"."""
    reach: str
    """Any one of these may be lost: nothing, process, node, rack."""
    short: tuple[int, ...] = ()
    """Ranks whose state is in one place of the next larger kind only."""


FromRank = Survives | Hello | Ready | Cold | Progress | Fault | Raised | Finished | Put | Change


@dataclass(frozen=True)
class Dump:
    """Write to this file where all threads are, for people."""

    path: str


ToRank = Leave | HandOver | Build | View | Stop | Keys | Changed | Dump

FROM_RANK: Codec[FromRank] = Codec(
    hello=Hello,
    ready=Ready,
    cold=Cold,
    progress=Progress,
    fault=Fault,
    raised=Raised,
    finished=Finished,
    survives=Survives,
    put=Put,
    change=Change,
)
TO_RANK: Codec[ToRank] = Codec(
    leave=Leave, hand_over=HandOver, build=Build, view=View, stop=Stop, keys=Keys, changed=Changed, dump=Dump
)
