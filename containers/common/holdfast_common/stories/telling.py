"""
From events to incidents: start, assignment, remedies, and end.

``fault_injected``, a verdict, ``node_lost`` and ``node_failed`` each belong to an open incident of their node, or start
one. A verdict belongs by the agent's id, or else to what was injected or noticed before and has no verdict yet, the
same fault first. Each event that may start an incident gives it a name derived from that event alone, so that ids seen
by a reader stay valid. Reports of jobs start, change and end none: every user of a node can write its log.
"""

import hashlib
import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Optional

from holdfast_common import kinds
from holdfast_common.events import Event, detail_number
from holdfast_common.faults import Remedy
from holdfast_common.incidents import PROCESS_FAULTS, Incident, RemedyStep
from holdfast_common.stories.drafts import Draft, Drafts

_NOTICES = (kinds.NODE_LOST, kinds.NODE_FAILED)
_UNDER_WAY = {kinds.NODE_REPLACING: Remedy.REPLACE.value, kinds.NODE_REBOOTING: Remedy.REBOOT.value}
_DONE = {kinds.NODE_REPLACED: Remedy.REPLACE.value, kinds.NODE_REBOOTED: Remedy.REBOOT.value}
_REMOVALS = (kinds.NODE_DELETED, kinds.CLUSTER_DELETED)
_RELEVANT = frozenset(
    (
        *_NOTICES, *_UNDER_WAY, *_DONE, *_REMOVALS, kinds.FAULT_INJECTED, kinds.VERDICT, kinds.VERDICT_WITHDRAWN,
        kinds.REMEDY_REQUESTED, kinds.REMEDY_REFUSED, kinds.HANDED_OVER,
    )
)  # fmt: skip
_NOTHING = Remedy.NONE.value
_CURED_BY_REBOOT = ("", Remedy.RESTART_PROCESS.value, Remedy.RESET_GPU.value, Remedy.REBOOT.value)
NAME_LENGTH = 10
INJECTION_WRITTEN_WITHIN_NS = 5_000_000_000
"""A notice may be written before the injection that it is of; what is open for longer is another fault."""
CONTROL_PLANE = "control-plane"


def name_of(event: Event) -> str:
    """Id derived from the first event only, so that all readers agree."""
    begun = "\0".join((event.node, event.kind, event.fault, str(event.time_ns)))
    return hashlib.sha256(begun.encode("utf-8", "surrogatepass")).hexdigest()[:NAME_LENGTH]


class Stories:
    def __init__(self) -> None:
        self.groups: dict[str, str] = {}
        """Instance group of each node, if an event has it."""
        self._drafts = Drafts()
        self._hosts: dict[str, str] = {}
        self._predecessors: dict[str, str] = {}

    def add(self, event: Event) -> None:
        """Events of jobs are ignored."""
        if event.source == "job":
            return
        node, detail = event.node, event.detail
        if node and detail:
            host, group = detail.get("host"), detail.get("group")
            if host and isinstance(host, str):
                self._hosts.setdefault(node, host)
            if group and isinstance(group, str):
                self.groups[node] = group
        if event.kind in _RELEVANT:
            _tell(self._drafts, event, self._predecessors)

    def incidents(self) -> "tuple[Incident, ...]":
        found = [draft.finished(self._hosts) for draft in self._drafts.all()]
        return tuple(sorted(found, key=lambda incident: (incident.start_ns, incident.id)))


def _tell(drafts: Drafts, event: Event, predecessors: "dict[str, str]") -> None:
    kind = event.kind
    if kind == kinds.FAULT_INJECTED:
        _inject(drafts, event)
    elif kind in _NOTICES:
        _notice(drafts, event)
    elif kind == kinds.VERDICT:
        _judge(drafts, event)
    elif kind == kinds.VERDICT_WITHDRAWN:
        _withdraw(drafts, event)
    elif kind in (kinds.REMEDY_REQUESTED, kinds.REMEDY_REFUSED):
        _ask(drafts, event)
    elif kind == kinds.HANDED_OVER:
        for draft in _meant(drafts, event):
            draft.settle("done", way="runtime")
    elif kind in _UNDER_WAY:
        _begin_repair(drafts, event, predecessors)
    elif kind in _DONE:
        _restore(drafts, event, predecessors)
    elif kind in _REMOVALS:
        for draft in drafts.all() if kind == kinds.CLUSTER_DELETED else drafts.of(event.node):
            if draft.is_open and not draft.is_noted:
                draft.change(removed_ns=event.time_ns)


def _open_on(drafts: Drafts, node: str) -> "list[Draft]":
    """Open incidents of the node itself: no process faults, and none without a remedy."""
    return [draft for draft in drafts.of(node) if draft.is_open and not draft.is_of_process and not draft.is_noted]


def _begin(drafts: Drafts, event: Event, **values: Any) -> Draft:
    draft = Draft(replace(Incident(id="", node=event.node, fault=event.fault), **values))
    drafts.add(draft)
    return draft


def _inject(drafts: Drafts, event: Event) -> None:
    candidates = [] if event.fault in PROCESS_FAULTS else _open_on(drafts, event.node)
    same = [draft for draft in candidates if _is_of_injection(draft, event)]
    if same:
        draft = same[0]
        if draft.known.injected_ns is None:
            draft.change(injected_ns=event.time_ns, fault=draft.known.fault if draft.agent_id else event.fault)
    else:
        draft = _begin(drafts, event, injected_ns=event.time_ns)
    draft.injected_as = draft.injected_as or event.fault
    draft.names.append(name_of(event))


def _is_of_injection(draft: Draft, event: Event) -> bool:
    if draft.known.injected_ns is not None:
        return event.fault in (draft.injected_as, draft.known.fault)
    return event.time_ns - (draft.known.noticed_ns or 0) <= INJECTION_WRITTEN_WITHIN_NS


def _notice(drafts: Drafts, event: Event) -> None:
    """Handle a lost node: its open incidents are noticed, and the node is out of service."""
    found = _open_on(drafts, event.node) or [_begin(drafts, event, noticed_ns=event.time_ns)]
    for draft in found:
        known = draft.known
        draft.change(
            noticed_ns=event.time_ns if known.noticed_ns is None else known.noticed_ns,
            signalled_ns=event.time_ns if known.signalled_ns is None else known.signalled_ns,
            out_ns=event.time_ns if known.out_ns is None else known.out_ns,
            fault=known.fault or event.fault,
        )
        draft.see(event, event.evidence)
    found[0].names.append(name_of(event))


def _judge(drafts: Drafts, event: Event) -> None:
    """Apply a verdict; a closed incident reopens."""
    agent_id = _text(event, "incident")
    known = [draft for draft in drafts.named(agent_id) if draft.known.node == event.node]
    waiting = _unjudged(drafts, event)
    draft = known[-1] if known else waiting or _begin(drafts, event, noticed_ns=event.time_ns)
    if known and waiting is not None and _is_what_was_injected(waiting, event):
        drafts.remove(waiting)  # the agent takes both for one
        draft.names += waiting.names
    drafts.name(draft, agent_id)
    if not agent_id:
        draft.names.append(name_of(event))
    code, signal = detail_number(event, "code"), event.detail.get("signal_ns")
    reported = draft.known
    times = [time for time in (reported.signalled_ns, signal) if isinstance(time, int) and 0 < time <= event.time_ns]
    began_again = reported.restored_ns is not None and not reported.replacement and event.action != _NOTHING
    if began_again:
        draft.repaired_with = None
    draft.change(
        fault=event.fault or reported.fault,
        code=reported.code if code is None else int(code),
        device=_text(event, "device") or reported.device,
        severity=_text(event, "severity") or reported.severity,
        remedy=event.action or reported.remedy,
        when=_text(event, "when") or reported.when,
        noticed_ns=event.time_ns if reported.noticed_ns is None else reported.noticed_ns,
        signalled_ns=min(times, default=None),
        withdrawn_ns=None,
        restored_ns=None if began_again else reported.restored_ns,
        out_ns=None if began_again else reported.out_ns,
    )
    draft.see(event, event.evidence)


def _unjudged(drafts: Drafts, event: Event) -> Optional[Draft]:
    """Injected or noticed incidents without a verdict; the same fault first, then the oldest."""
    waiting = [draft for draft in drafts.of(event.node) if draft.is_open and not draft.agent_id]
    same = [draft for draft in waiting if _is_what_was_injected(draft, event) or not event.fault]
    return next(iter(same or [draft for draft in waiting if not draft.is_of_process]), None)


def _is_what_was_injected(draft: Draft, event: Event) -> bool:
    code = detail_number(event, "code")
    return draft.known.fault != "" and draft.known.fault in (
        event.fault,
        "" if code is None else f"xid-{int(code)}",
    )


def _meant(drafts: Drafts, event: Event) -> "list[Draft]":
    agent_id, node = _text(event, "incident"), event.node
    if agent_id:
        return [draft for draft in drafts.named(agent_id) if node in ("", draft.known.node)][-1:]
    return [draft for draft in drafts.of(node) if draft.is_open]


def _withdraw(drafts: Drafts, event: Event) -> None:
    for draft in _meant(drafts, event):
        if draft.known.restored_ns is None:
            draft.change(withdrawn_ns=event.time_ns)
        draft.see(event, event.evidence)


def _ask(drafts: Drafts, event: Event) -> None:
    refused = event.kind == kinds.REMEDY_REFUSED
    for draft in _meant(drafts, event):
        draft.change(host=draft.known.host or _text(event, "host"))
        step = RemedyStep(
            event.time_ns,
            event.action or draft.known.remedy,
            _text(event, "way"),
            "refused" if refused else "requested",
        )
        last = draft.remedies[-1] if draft.remedies else None
        if last is None or (last.remedy, last.way, last.outcome) != (step.remedy, step.way, step.outcome):
            draft.remedies.append(step)  # a breaker that stays open says so more than once
        draft.see(event, event.evidence)


def _line_of(predecessors: "dict[str, str]", node: str) -> "dict[str, None]":
    line = {node: None}
    earlier = predecessors.get(node, node)
    while earlier not in line:
        line[earlier] = None
        earlier = predecessors.get(earlier, node)
    return line


def _begin_repair(drafts: Drafts, event: Event, predecessors: "dict[str, str]") -> None:
    remedy, meant = _UNDER_WAY[event.kind], _line_of(predecessors, event.node)
    new = _text(event, "replacement")
    if new and new not in meant:
        predecessors[new] = event.node
    cured = _cured(drafts, meant, remedy)
    own = _own_repair(cured, remedy)
    for draft in cured:
        if draft.known.out_ns is None:
            draft.change(out_ns=event.time_ns)
        draft.change(slurm_jobs=draft.known.slurm_jobs or _text(event, "jobs"))
        if draft in own and not draft.settle("under way", remedy=remedy):
            draft.remedies.append(RemedyStep(event.time_ns, remedy, CONTROL_PLANE, "under way"))


def _restore(drafts: Drafts, event: Event, predecessors: "dict[str, str]") -> None:
    remedy = _DONE[event.kind]
    old, new = event.node, ""
    if event.kind == kinds.NODE_REPLACED:
        replaces = _text(event, "replaces")
        old, new = (replaces, event.node) if replaces else (event.node, _text(event, "replacement"))
    meant = _line_of(predecessors, old)
    cured = _cured(drafts, meant, remedy)
    own = _own_repair(cured, remedy)
    for draft in cured:
        if draft not in own:
            draft.repaired_with = own[0]
        elif not draft.settle("done", remedy=remedy):
            draft.remedies.append(RemedyStep(event.time_ns, remedy, CONTROL_PLANE, "done"))
        draft.change(restored_ns=event.time_ns, replacement=new)
    _end_processes(drafts, event, meant)


def _end_processes(drafts: Drafts, event: Event, nodes: "Iterable[str]") -> None:
    """End process faults after the node has booted or is gone."""
    for draft in itertools.chain.from_iterable(map(drafts.of, nodes)):
        if draft.is_of_process and draft.is_open and draft.known.remedy != _NOTHING:
            draft.change(withdrawn_ns=event.time_ns)
            draft.see(event, f"{event.kind}: no process of before is left")


def _cured(drafts: Drafts, nodes: "Iterable[str]", remedy: str) -> "list[Draft]":
    return [
        draft
        for draft in itertools.chain.from_iterable(map(drafts.of, nodes))
        if not draft.is_of_process
        and _may_be_repaired(draft)
        and (remedy == Remedy.REPLACE.value or draft.asked_for(remedy) or draft.known.remedy in _CURED_BY_REBOOT)
    ]


def _own_repair(cured: "list[Draft]", remedy: str) -> "list[Draft]":
    asked = [draft for draft in cured if draft.asked_for(remedy)]
    return asked or [draft for draft in cured if draft.known.out_ns is not None] or cured


def _may_be_repaired(draft: Draft) -> bool:
    """True for a requested repair, also after its verdict is withdrawn."""
    return (draft.is_open and not draft.is_noted) or (
        draft.known.restored_ns is None and draft.known.removed_ns is None and draft.is_pending
    )


def _text(event: Event, name: str) -> str:
    value = event.detail.get(name)
    return value if isinstance(value, str) else ""
