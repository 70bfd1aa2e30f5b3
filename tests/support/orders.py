"""Templates in which one order is missing, deployed on the embedded AWS in time that nobody waits for."""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from deployments import Cloud

from holdfast.localcloud.aws.cloudformation.template import dependencies

STACK = "without"
Template = dict[str, Any]
Pair = tuple[str, str]


def listed(depends_on: Any) -> list[str]:
    return [depends_on] if isinstance(depends_on, str) else list(depends_on or ())


def pairs(template: Mapping[str, Any]) -> Iterator[tuple[Pair, str]]:
    """The types that a DependsOn joins, and the resource that has it."""
    resources = template["Resources"]
    for name, definition in resources.items():
        for other in listed(definition.get("DependsOn")):
            yield (definition["Type"], resources[other]["Type"]), name


@dataclass(frozen=True, kw_only=True)
class Case:
    """A resource that no longer waits for those of a type; and what of its template shows whether that matters."""

    template: Template
    user: str
    late: frozenset[str]
    watched: frozenset[str] = field(default_factory=frozenset)
    """The resource, what comes after it, and those that come late: one of these fails."""


def without(template: Mapping[str, Any], pair: Pair, user: str) -> Case | None:
    """The case of one resource; None when another reference or dependency implies the same order."""
    changed = copy.deepcopy(dict(template))
    resources = changed["Resources"]
    barred = {other for other in listed(resources[user].get("DependsOn")) if resources[other]["Type"] == pair[1]}
    resources[user]["DependsOn"] = [other for other in listed(resources[user]["DependsOn"]) if other not in barred]
    needs = dependencies(changed)
    late = frozenset(barred - reached(needs, [user]))
    if not late:
        return None
    waiting = {name for name in needs if late & reached(needs, [name])}
    after = {name for name in needs if user in reached(needs, [name])} - waiting
    kept = reached(needs, {*after, *late})
    changed["Resources"] = {
        name: {
            key: [other for other in listed(value) if other in kept] if key == "DependsOn" else value
            for key, value in definition.items()
            if key not in ("DeletionPolicy", "UpdateReplacePolicy")
        }
        for name, definition in resources.items()
        if name in kept
    }
    changed.pop("Outputs", None)
    return Case(template=changed, user=user, late=late, watched=frozenset(after | late))


def reached(needs: Mapping[str, set[str]], names: Iterable[str]) -> set[str]:
    """The names and all that they need."""
    found = set(names)
    left = list(found)
    while left:
        fresh = needs[left.pop()] - found
        found |= fresh
        left += fresh
    return found


def deployed(case: Case, cloud: Cloud) -> tuple[bool, list[tuple[str, str]]]:
    """Whether it was made and deleted again, and who failed why; nothing of it is left."""
    stacks = cloud.of("cloudformation")
    status = cloud.create(STACK, case.template)["StackStatus"]
    told = cloud.why(STACK)
    gone = cloud.delete(STACK)
    if gone["StackStatus"] != "DELETE_COMPLETE":
        told = cloud.why(gone["StackId"])
        summaries = stacks.list_stack_resources(StackName=gone["StackId"])["StackResourceSummaries"]
        left = [one["LogicalResourceId"] for one in summaries if one["ResourceType"].startswith("Custom::")]
        stacks.delete_stack(StackName=STACK, RetainResources=left)
        assert cloud.settled(gone["StackId"])["StackStatus"] == "DELETE_COMPLETE", cloud.why(gone["StackId"])
    forget_logs(cloud)
    fine = status == "CREATE_COMPLETE" and gone["StackStatus"] == "DELETE_COMPLETE"
    reasons = [line.partition(": ")[::2] for line in told]
    return fine, [(name, why) for name, why in reasons if "cancelled" not in why]


def forget_logs(cloud: Cloud) -> None:
    """Services make log groups of their own, which no stack deletes."""
    logs = cloud.of("logs")
    for group in logs.describe_log_groups()["logGroups"]:
        logs.delete_log_group(logGroupName=group["logGroupName"])
