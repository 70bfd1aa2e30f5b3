"""Changes since a job began, and since the previous job of its name."""

from collections.abc import Iterable, Mapping

from holdfast.cli.diagnosis import Change
from holdfast.cli.slurm import JobRecord, parse_submission
from holdfast_common import Event, kinds

_OF_NODES = {
    kinds.NODE_LOST: "node {node} was lost: {evidence}",
    kinds.NODE_REPLACED: "node {node} replaces {replaces}",
    kinds.NODE_REBOOTED: "node {node} was rebooted",
    kinds.DAEMON_LOST: "node {node}: a daemon was lost: {evidence}",
    kinds.CLUSTER_UPDATING: "the cluster is being changed: {evidence}",
    kinds.VERDICT: "node {node}: {fault}: {evidence}",
}
_OF_JOB = {
    kinds.JOB_RESUMED: "the job resumed at step {step}",
    kinds.JOB_RESIZED: "the job was resized from {world_size_before} to {world_size} ranks",
    kinds.RANK_LOST: "rank {rank} was lost: {evidence}",
    kinds.LAUNCHER_LOST: "the launcher of node {lost} was lost: {evidence}",
}
MOST = 12
_EVIDENCE = 160
_SAME_S = 5.0
"""Each launcher reports the loss of one."""


def changes_of_events(events: Iterable[Event], *, job: str, since_s: float) -> list[Change]:
    """Newest changes of the job and of nodes since it began."""
    found: list[Change] = []
    hosts: dict[str, str] = {}
    for event in events:
        if host := event.detail.get("host"):
            hosts[event.node] = str(host)
        text = _OF_NODES.get(event.kind) or (_OF_JOB.get(event.kind) if event.job == job.partition("_")[0] else None)
        if text is None or event.time_ns / 1e9 < since_s:
            continue
        evidence = (event.evidence.splitlines() or [""])[0][:_EVIDENCE]
        known = {"node": hosts.get(event.node, event.node), "evidence": evidence, "fault": event.fault}
        shown = text.format_map(_Known({name: str(value) for name, value in event.detail.items()} | known))
        change = Change(at_s=event.time_ns / 1e9, text=shown.rstrip(": "))
        if not any(one.text == change.text and abs(change.at_s - one.at_s) < _SAME_S for one in found[-MOST:]):
            found.append(change)
    return found[-MOST:]


def changes_of_jobs(records: Iterable[JobRecord], own: JobRecord | None, *, started_s: float) -> list[Change]:
    """Differences to the previous job of this name and user."""
    if own is None:
        return []
    same = [one for one in records if (one.name, one.user) == (own.name, own.user) and one.number != own.number]
    before = max(
        (one for one in same if one.started_s is not None and one.has_ended and one.started_s <= started_s),
        key=lambda one: one.started_s or 0,
        default=None,
    )
    if before is None:
        return []
    different = []
    now, then = (_command(one) for one in (own, before))
    if now and then and now != then:
        different.append(f"command {now!r} in place of {then!r}")
    if before.nodes != own.nodes and own.nodes and "_" not in own.job_id:  # a task has one of its array's nodes
        different.append(f"nodes {own.nodes} in place of {before.nodes}")
    if not different:
        return []
    head = f"since the previous job of this name ({before.job_id}, {before.state})"
    return [Change(at_s=started_s, text=f"{head}: {'; '.join(different)}")]


def _command(record: JobRecord) -> str:
    """Job file with its arguments: the controller knows no options of the submission, accounting does."""
    return next(iter(reversed(parse_submission(record.submit_line).scripts)), "")


def changes_of_drivers(drivers: Mapping[str, str], *, at_s: float) -> list[Change]:
    """Nodes of one job with different drivers."""
    known = {node: text for node, text in drivers.items() if text}
    if len(set(known.values())) < 2:
        return []
    return [Change(at_s=at_s, text="drivers differ: " + "; ".join(f"{node}: {text}" for node, text in known.items()))]


class _Known(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"
