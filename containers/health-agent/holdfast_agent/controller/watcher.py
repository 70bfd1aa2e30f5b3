"""
Comparison of polls: nodes lost, replaced, back. Pure.

An instance that is gone and a new one of its group make a replacement, oldest first; one that is gone without a
successor was removed on request. The first poll is the baseline.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Optional

from holdfast_agent.controller.observation import (
    AWAY,
    FAILURE,
    MOVING,
    PENDING,
    RUNNING,
    HmaRecord,
    Instance,
    Observation,
)
from holdfast_agent.hma import parse_finding
from holdfast_agent.signals import Happening
from holdfast_agent.slurm import SlurmNode
from holdfast_common import fault_named, kinds

PAIRED_WITHIN_S = 7200.0
"""A new instance after more than two hours is not a replacement."""
MOST_SEEN = 2000
MOST_HELD = 1000


class Watcher:
    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}
        """Instance id -> group, status, host, and reported events."""
        self._gone: list[dict[str, Any]] = []
        self._replacing: dict[str, dict[str, Any]] = {}
        """New instance id -> the old one, and since when."""
        self._booted: dict[str, str] = {}
        self._seen: list[str] = []
        self._begun = False
        self._held: list[Happening] = []

    def snapshot(self) -> "dict[str, Any]":
        return {
            "known": self._known,
            "gone": self._gone,
            "replacing": self._replacing,
            "booted": self._booted,
            "seen": self._seen,
            "begun": self._begun,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Raises KeyError, TypeError or ValueError for an invalid snapshot."""
        self._known = {str(name): dict(known) for name, known in snapshot["known"].items()}
        self._gone = [dict(gone) for gone in snapshot["gone"]]
        self._replacing = {str(name): dict(one) for name, one in snapshot["replacing"].items()}
        self._booted = {str(name): str(time) for name, time in snapshot["booted"].items()}
        self._seen = [str(event_id) for event_id in snapshot["seen"]]
        self._begun = bool(snapshot["begun"])

    def look(self, seen: Observation) -> "tuple[Happening, ...]":
        reported: list[Happening] = []
        if seen.instances is not None:
            reported += self._compare(seen.instances, now_s=seen.boot_s)
        if seen.nodes is not None:
            reported += self._compare_slurm(seen.nodes, now_s=seen.boot_s)
        reported += self._findings(seen.records or ())
        # A control plane tells of nodes, or may do so: nothing is reported twice, and what is not known yet waits.
        of_nodes = [*self._held, *(one for one in reported if one.kind != kinds.VERDICT)][-MOST_HELD:]
        self._held = of_nodes if seen.has_control_plane_events is None else []
        found = tuple(one for one in reported if one.kind == kinds.VERDICT)
        return (*of_nodes, *found) if seen.has_control_plane_events is False else found

    # --- instances

    def _compare(self, instances: "tuple[Instance, ...]", *, now_s: float) -> Iterator[Happening]:
        here = {one.instance_id: one for one in instances if one.status != "NotFound"}
        for name in [name for name in self._known if name not in here]:
            known = self._known.pop(name)
            self._replacing.pop(name, None)
            if known["status"] not in MOVING:  # one that moved to another cluster has no successor
                self._gone.append({"id": name, "gone_s": now_s, **known})
        self._gone = [gone for gone in self._gone if now_s - gone["gone_s"] < PAIRED_WITHIN_S]
        for one in instances:
            if one.instance_id in here:
                yield from self._instance(one, now_s=now_s)
        self._begun = True

    def _instance(self, one: Instance, *, now_s: float) -> Iterator[Happening]:
        known = self._known.get(one.instance_id)
        if one.status in AWAY:
            self._booted.pop(one.instance_id, None)  # its next boot is no reboot
        if known is None:
            known = {"group": one.group, "status": one.status, "host": one.host, "has_run": one.status == RUNNING}
            self._known[one.instance_id] = known
            if self._begun and one.status not in MOVING:
                yield from self._arrived(one)
        before, known["status"], known["host"], known["group"] = known["status"], one.status, one.host, one.group
        if before != one.status or one.instance_id in self._replacing:
            yield from self._changed(one, known, before=before, now_s=now_s)
        known["has_run"] = known["has_run"] or one.status == RUNNING

    def _arrived(self, one: Instance) -> Iterator[Happening]:
        old = next((gone for gone in self._gone if gone["group"] == one.group), None)
        if old is None:
            return
        self._gone.remove(old)
        since_s = old.get("lost_s", old["gone_s"])
        if "lost_s" not in old and not old.get("asked"):
            evidence = "the instance is gone; another instance replaced it"
            yield self._node(
                kinds.NODE_LOST, old["id"], old, fault="instance-lost", evidence=evidence, action="replace"
            )
        evidence = f"{old['id']} is gone; replaced by {one.instance_id}"
        yield self._node(
            kinds.NODE_REPLACING, old["id"], old, evidence=evidence, action="replace", replacement=one.instance_id
        )
        self._replacing[one.instance_id] = {"old": old["id"], "since_s": since_s}

    def _changed(self, one: Instance, known: "dict[str, Any]", *, before: str, now_s: float) -> Iterator[Happening]:
        name = one.instance_id
        if one.status == RUNNING:
            replaced = self._replacing.pop(name, None)
            if replaced is not None:
                duration_s = round(now_s - replaced["since_s"], 3)
                yield self._node(kinds.NODE_REPLACED, name, known, duration_s=duration_s, replaces=replaced["old"])
            elif "rebooting_s" in known:
                duration_s = round(now_s - known.pop("rebooting_s"), 3)
                known.pop("lost_s", None)
                yield self._node(kinds.NODE_REBOOTED, name, known, duration_s=duration_s)
        elif before == one.status:
            return
        elif one.status == FAILURE:
            known["lost_s"] = now_s
            kind = kinds.NODE_LOST if known["has_run"] else kinds.NODE_FAILED
            fault = "instance-lost" if known["has_run"] else "lifecycle-failed"
            yield self._node(kind, name, known, fault=fault, evidence=one.message or "its status is Failure")
        elif one.status == PENDING and before == RUNNING and "rebooting_s" not in known:
            known["rebooting_s"] = known.get("lost_s", now_s)
            yield self._node(
                kinds.NODE_REBOOTING, name, known, evidence="its status went from Running to Pending", action="reboot"
            )

    # --- Slurm

    def _compare_slurm(self, nodes: "tuple[SlurmNode, ...]", *, now_s: float) -> Iterator[Happening]:
        names = {known["host"]: name for name, known in self._known.items() if known["host"]}
        for node in nodes:
            name = names.get(node.name)
            if name is None or self._known[name]["status"] in AWAY:
                continue
            known = self._known[name]
            known["asked"] = node.request or known.get("asked", "")
            yield from self._silent(node, name, known, now_s=now_s)
            yield from self._booted_again(node, name, known, now_s=now_s)

    def _silent(self, node: SlurmNode, name: str, known: "dict[str, Any]", *, now_s: float) -> Iterator[Happening]:
        if not node.is_lost:
            if known.get("status") == RUNNING and node.base in ("IDLE", "MIXED", "ALLOCATED"):
                known.pop("lost_s", None)
            return
        if "lost_s" not in known and "rebooting_s" not in known and not known["asked"]:
            known["lost_s"] = now_s
            evidence = f"Slurm gets no response from {node.name}: {node.state}"
            yield self._node(kinds.NODE_LOST, name, known, fault="instance-unreachable", evidence=evidence)

    def _booted_again(
        self, node: SlurmNode, name: str, known: "dict[str, Any]", *, now_s: float
    ) -> Iterator[Happening]:
        """Detect a reboot by Slurm's boot time: the service reports Running throughout."""
        if not node.boot_time:
            return
        before, self._booted[name] = self._booted.get(name), node.boot_time
        if before is None or before == node.boot_time or "rebooting_s" in known:
            return
        since_s = known.pop("lost_s", now_s)
        known["asked"] = ""
        evidence = f"Slurm's boot time went from {before} to {node.boot_time}"
        yield self._node(kinds.NODE_REBOOTING, name, known, evidence=evidence, action="reboot")
        yield self._node(kinds.NODE_REBOOTED, name, known, duration_s=round(now_s - since_s, 3))

    # --- HyperPod's agents

    def _findings(self, records: "tuple[HmaRecord, ...]") -> Iterator[Happening]:
        for record in records:
            if record.event_id in self._seen:
                continue
            self._seen = [*self._seen[1 - MOST_SEEN :], record.event_id]
            found = parse_finding(record.text)
            if found is None:
                continue
            detail: dict[str, Any] = {
                "incident": f"hma:{record.instance_id}:{found.type or found.reason}:{found.code or ''}",
                "device": found.device,
                "severity": "node",
                "when": "now",
                "by": "hma",
            }
            if found.code is not None:
                detail["code"] = found.code
            evidence = " ".join(part for part in (found.type, found.reason, found.message) if part)[:500]
            fault, action = fault_named("hma-finding").name, found.action or "none"
            yield Happening(
                kind=kinds.VERDICT,
                fault=fault,
                evidence=evidence,
                action=action,
                detail=detail,
                node=record.instance_id,
            )

    @staticmethod
    def _node(
        kind: str,
        name: str,
        known: Mapping[str, Any],
        *,
        fault: str = "",
        evidence: str = "",
        action: str = "",
        duration_s: Optional[float] = None,
        **detail: str,
    ) -> Happening:
        return Happening(
            kind=kind,
            fault=fault,
            evidence=evidence,
            action=action,
            duration_s=duration_s,
            detail={"group": str(known["group"]), "host": str(known["host"]), **detail},
            node=name,
        )
