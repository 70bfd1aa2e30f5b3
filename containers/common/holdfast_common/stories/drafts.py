"""Incidents under construction, by node and by the agent's id."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from holdfast_common.events import Event
from holdfast_common.faults import Remedy
from holdfast_common.incidents import Incident, RemedyStep, Sighting


@dataclass
class Draft:
    """An incident under construction; ``known`` holds its values so far."""

    known: Incident
    agent_id: str = ""
    injected_as: str = ""
    names: "list[str]" = field(default_factory=list)
    remedies: "list[RemedyStep]" = field(default_factory=list)
    evidence: "dict[str, Sighting]" = field(default_factory=dict)
    repaired_with: "Optional[Draft]" = None

    @property
    def id(self) -> str:
        return self.agent_id or self.names[0]

    @property
    def is_noted(self) -> bool:
        """True if it requires nothing, and no remedy of it is in progress."""
        return self.known.remedy == Remedy.NONE.value and not self.is_pending

    def asked_for(self, remedy: str) -> bool:
        return any(step.is_pending and step.remedy == remedy for step in self.remedies)

    @property
    def is_open(self) -> bool:
        return self.known.restored_ns is None and self.known.withdrawn_ns is None and self.known.removed_ns is None

    @property
    def is_of_process(self) -> bool:
        return self.known.is_of_process

    @property
    def is_pending(self) -> bool:
        return any(step.is_pending for step in self.remedies)

    def change(self, **values: Any) -> None:
        self.known = replace(self.known, **values)

    def see(self, event: Event, text: str) -> None:
        """Keep each line of evidence once, with its first time."""
        for line in text.splitlines():
            if line.strip():
                self.evidence.setdefault(line.strip(), Sighting(event.time_ns, event.source, line.strip()))

    def settle(self, outcome: str, *, remedy: str = "", way: str = "") -> bool:
        for at in range(len(self.remedies) - 1, -1, -1):
            step = self.remedies[at]
            if step.is_pending and remedy in ("", step.remedy) and way in ("", step.way):
                self.remedies[at] = RemedyStep(step.time_ns, step.remedy, step.way, outcome)
                return True
        return False

    def finished(self, hosts: "dict[str, str]") -> Incident:
        names = tuple(dict.fromkeys([self.agent_id, *self.names] if self.agent_id else self.names))
        self.change(
            id=names[0],
            names=names,
            host=self.known.host or hosts.get(self.known.node, ""),
            repaired_with=self.repaired_with.id if self.repaired_with is not None else "",
            remedies=tuple(self.remedies),
            evidence=tuple(self.evidence.values()),
        )
        return self.known


class Drafts:
    """Index by node and by the agent's id: a log has thousands, and an event concerns few."""

    def __init__(self) -> None:
        self._of_node: dict[str, list[Draft]] = {}
        self._of_agent: dict[str, list[Draft]] = {}

    def all(self) -> "Iterator[Draft]":
        return itertools.chain.from_iterable(self._of_node.values())

    def of(self, node: str) -> "Sequence[Draft]":
        return self._of_node.get(node, ())

    def named(self, agent_id: str) -> "Sequence[Draft]":
        return self._of_agent.get(agent_id, ())

    def add(self, draft: Draft) -> None:
        self._of_node.setdefault(draft.known.node, []).append(draft)

    def name(self, draft: Draft, agent_id: str) -> None:
        if agent_id and not draft.agent_id:
            draft.agent_id = agent_id
            self._of_agent.setdefault(agent_id, []).append(draft)

    def remove(self, draft: Draft) -> None:
        own = self._of_node[draft.known.node]
        own[:] = [one for one in own if one is not draft]
