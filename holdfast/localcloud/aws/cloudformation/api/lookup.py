"""Lookup of the stack or change set that a request names, and paging."""

from collections.abc import Sequence
from typing import Any

from holdfast.localcloud.aws.cloudformation.deployment import ChangeSet, Stack, StackStore
from holdfast.localcloud.aws.common import ServiceError

PAGE = 100


def invalid(message: str) -> ServiceError:
    return ServiceError("ValidationError", message)


def found(store: StackStore, name: str) -> Stack:
    stack = store.find(name)
    if stack is None:
        raise invalid(f"Stack with id {name} does not exist")
    return stack


def named(store: StackStore, request: dict[str, Any]) -> Stack:
    if not request.get("StackName"):
        raise invalid("StackName must be given")
    return found(store, request["StackName"])


def owner(store: StackStore, physical_id: str | None) -> Stack:
    for stack in store.stacks.values():
        if physical_id and any(entry.physical_id == physical_id for entry in stack.resources.values()):
            return stack
    raise invalid(f"Stack for {physical_id} does not exist")


def change_set(store: StackStore, name: str, stack_name: str | None) -> tuple[Stack, ChangeSet]:
    stacks = [found(store, stack_name)] if stack_name else list(store.stacks.values())
    for stack in stacks:
        for made in stack.change_sets.values():
            if name == made.id or (stack_name and name == made.name):
                return stack, made
    raise ServiceError("ChangeSetNotFound", f"ChangeSet [{name}] does not exist", 404)


def paged(items: Sequence[Any], token: str | None) -> tuple[list[Any], dict[str, str]]:
    start = int(token) if token and token.isdigit() else 0
    more = {"NextToken": str(start + PAGE)} if start + PAGE < len(items) else {}
    return list(items[start : start + PAGE]), more


def present(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value not in (None, "")}
