"""Texts of an upgrade. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.cli.upgrading.plan import GroupPlan, Request


@dataclass(frozen=True, kw_only=True)
class GroupEnd:
    """
    State of a group after an upgrade.

    Args:
        status: SoftwareUpdateStatus, or empty where it was not begun.
        bad: (host, status) of nodes that are not in service.
        message: FailureMessage, or why it was not begun.
    """

    name: str
    status: str = ""
    nodes: int = 0
    bad: tuple[tuple[str, str], ...] = ()
    message: str = ""

    @property
    def is_upgraded(self) -> bool:
        return self.status == "Succeeded"


def plan_lines(plans: Iterable[GroupPlan], request: Request) -> list[str]:
    """Return the plan in lines, one for each group and effect."""
    target = request.release or request.image_id or "the latest release"
    lines = []
    for plan in plans:
        group, count = plan.group, len(plan.nodes)
        if plan.skipped:
            lines.append(f"{group.name}: stays as it is: {plan.skipped}")
            continue
        how = "all at once" if plan.at_a_time == count else f"{plan.at_a_time} at a time"
        how += f", {plan.wait_s} s between them" if plan.wait_s else ""
        nodes = "1 node" if count == 1 else f"{count} nodes, {how}"
        lines.append(f"{group.name}: {nodes}: {group.image or 'the release it has'} -> {target}")
        lines += [f"  {text}" for text in plan.leave]
        lines += [f"  lost: {text}" for text in plan.lost]
    if any(not plan.skipped for plan in plans):
        lines.append("root volumes are replaced: what is stored there is lost; lifecycle scripts run again")
    return lines


def end_of(ends: Sequence[GroupEnd], *, again: str) -> tuple[str, bool]:
    """Return the end state in words, and True if all groups are upgraded; ``again``: the command without groups."""
    upgraded = ", ".join(f"{one.name} ({one.nodes})" for one in ends if one.is_upgraded) or "none"
    stopped = next((one for one in ends if not one.is_upgraded), None)
    if stopped is None:
        return f"upgraded: {upgraded}", True
    begun = f"group {stopped.name} is {stopped.status}" if stopped.status else f"group {stopped.name} was not begun"
    bad = ", ".join(f"{host} {status}" for host, status in stopped.bad)
    parts = [f"{begun}: {stopped.message or 'no reason was given'}"]
    parts += [f"nodes not in service: {bad}"] if bad else []
    waiting = [one.name for one in ends if not one.is_upgraded and one is not stopped]
    parts += [f"upgraded: {upgraded}", f"not begun: {', '.join(waiting) or 'none'}"]
    groups = " ".join(f"--group {name}" for name in [stopped.name, *waiting])
    parts.append(f"remove the cause, then run: {again} {groups}")
    return "; ".join(parts), False
