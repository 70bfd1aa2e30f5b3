"""Messages between connected launchers, for themselves and for others."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Member:
    """A launcher as known to others. Only it makes a turn newer, which refutes suspicions."""

    node: int
    uid: str
    incarnation: int
    host: str
    port: int
    turn: int = 0
    here: bool = True

    @property
    def age(self) -> tuple[int, int, bool]:
        return self.incarnation, self.turn, not self.here


@dataclass(frozen=True)
class Suspicion:
    """The reporter has lost its connection to a launcher, or gets none, or hears no sign of life."""

    node: int
    uid: str
    turn: int
    reporter: int


@dataclass(frozen=True)
class Letter:
    """A message for one launcher, or for all of an arc of the ring."""

    origin: int
    uid: str
    number: int
    """With the uid it is unique: a letter may come twice, and is read once."""
    body: str
    to: int = -1
    """-1 for an arc."""
    first: int = -1
    """The arc begins with this launcher."""
    end: int = -1
    """And ends before this one."""
    skip: tuple[int, ...] = ()
    """Those of the arc that are not meant."""


@dataclass(frozen=True)
class Packet:
    """All that goes to one neighbour at a time."""

    members: tuple[Member, ...] = ()
    suspicions: tuple[Suspicion, ...] = ()
    letters: tuple[Letter, ...] = ()
