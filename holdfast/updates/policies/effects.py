"""Update policy: effect of a change, reason and action. The tables are in the other files of this folder."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any


class Effect(IntEnum):
    NOTHING = 0
    IN_PLACE = 1
    NEW_NODES = 2
    ROLLING = 3
    DELETES_NODES = 4
    REPLACES_RESOURCE = 5
    REPLACES_GROUP = 6
    REPLACES_CLUSTER = 7
    REPLACES_FILE_SYSTEM = 8
    REFUSED = 9

    @property
    def words(self) -> str:
        return _WORDS[self]

    @property
    def disturbs(self) -> bool:
        return self >= Effect.NEW_NODES

    @property
    def needs_leave(self) -> bool:
        """Return True if ``allow_replacement`` has to name the setting."""
        return Effect.REPLACES_GROUP <= self <= Effect.REPLACES_FILE_SYSTEM


_WORDS = {
    Effect.NOTHING: "nothing",
    Effect.IN_PLACE: "in place",
    Effect.NEW_NODES: "only new nodes",
    Effect.ROLLING: "rolling",
    Effect.DELETES_NODES: "deletes nodes",
    Effect.REPLACES_RESOURCE: "replaces a resource",
    Effect.REPLACES_GROUP: "replaces the instance group",
    Effect.REPLACES_CLUSTER: "replaces the cluster",
    Effect.REPLACES_FILE_SYSTEM: "replaces a file system",
    Effect.REFUSED: "refused",
}

MEANINGS = {
    Effect.NOTHING: "AWS sees no change",
    Effect.IN_PLACE: "the resource is changed, what runs on it goes on",
    Effect.NEW_NODES: "running nodes stay as they are; nodes made from now on have it",
    Effect.ROLLING: "nodes get it in batches, each is out of service meanwhile",
    Effect.DELETES_NODES: "nodes are taken away, with what runs on them",
    Effect.REPLACES_RESOURCE: "a resource without data or nodes is made again",
    Effect.REPLACES_GROUP: "all nodes of the group are deleted",
    Effect.REPLACES_CLUSTER: "all nodes of all groups are deleted and a new cluster is created",
    Effect.REPLACES_FILE_SYSTEM: "an empty file system takes the place of one with data",
    Effect.REFUSED: "AWS does not do it, the deployment would fail and be rolled back",
}


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Changed setting and its surroundings, as plain JSON with defaults."""

    old: Any
    new: Any
    before: Mapping[str, Any]
    """The section that has the setting, as deployed."""
    after: Mapping[str, Any]
    """The same section of the file."""
    deployed: Mapping[str, Any]
    """The whole environment as deployed."""
    desired: Mapping[str, Any]
    """The whole environment of the file."""


@dataclass(frozen=True, kw_only=True)
class Case:
    when: str
    """In words, for the table."""
    holds: Callable[[Edit], bool]
    effect: Effect
    reason: str
    action: str = ""
    """Default: nothing has to be done."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Effect of changes of some settings: that of the first matching case, or its own."""

    settings: tuple[str, ...]
    """As the page of the environment file writes them: ``[]`` after the name of a list stands for each item."""
    effect: Effect
    reason: str
    source: str
    action: str = ""
    """Default: nothing has to be done."""
    cases: tuple[Case, ...] = ()


def grows(edit: Edit) -> bool:
    return edit.old is not None and edit.new is not None and bool(edit.new > edit.old)


def shrinks(edit: Edit) -> bool:
    return edit.old is not None and edit.new is not None and bool(edit.new < edit.old)


def appears(edit: Edit) -> bool:
    return edit.old is None


def vanishes(edit: Edit) -> bool:
    return edit.new is None
