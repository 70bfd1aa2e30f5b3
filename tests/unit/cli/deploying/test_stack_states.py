"""What a user is told of a stack whose deployment failed, or goes on without its command."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from holdfast.cli.commands.environment import diff
from holdfast.cli.deploying import after_failure, is_under_way, refuse_replacements, settle
from holdfast.cli.terminal import CommandError
from holdfast.importing import DeployedStack


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("UPDATE_ROLLBACK_COMPLETE", "it is unchanged; correct the cause and run holdfast up again"),
        ("ROLLBACK_COMPLETE", "nothing is deployed; correct the cause"),
        ("UPDATE_ROLLBACK_FAILED", "run: aws cloudformation continue-update-rollback --stack-name lab"),
        ("UPDATE_FAILED", "see: aws cloudformation describe-stack-events --stack-name lab"),
    ],
)
def test_a_failure_ends_with_the_state_of_the_stack_and_what_to_do(status: str, words: str) -> None:
    said = after_failure("lab", status=status)
    assert said.startswith(f"stack lab is in {status}: ")
    assert words in said


def test_diff_and_up_refuse_a_stack_whose_rollback_failed_in_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = DeployedStack(state="read", environment={}, stack_status="UPDATE_ROLLBACK_FAILED")
    monkeypatch.setattr("holdfast.importing.deployed_environment", lambda **_: stuck)
    monkeypatch.setattr("holdfast.cli.commands.environment.diff._read_deployed", lambda _: stuck)
    definition = SimpleNamespace(cloud="aws", stack_name="holdfast-local", region="us-west-2")
    with pytest.raises(CommandError) as by_up:
        refuse_replacements(definition, SimpleNamespace())  # type: ignore[arg-type]
    with pytest.raises(CommandError) as by_diff:
        diff.diff("local")
    assert str(by_up.value) == str(by_diff.value)
    assert "continue-update-rollback --stack-name holdfast-local" in str(by_up.value)


class Statuses:
    """CloudFormation, whose stack has one status after the other; the last one stays."""

    def __init__(self, *statuses: str) -> None:
        self._statuses: Iterator[str] = iter(statuses)
        self.last, self.asked = "", 0

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803 - AWS's name
        self.asked += 1
        self.last = next(self._statuses, self.last)
        if not self.last:
            error = {"Code": "ValidationError", "Message": f"Stack with id {StackName} does not exist"}
            raise ClientError({"Error": error}, "DescribeStacks")
        return {"Stacks": [{"StackStatus": self.last}]}


def settled(cloudformation: Statuses) -> None:
    settle(SimpleNamespace(client=lambda _: cloudformation), stack="lab")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("statuses", "asked"),
    [
        (("",), 1),
        (("CREATE_COMPLETE",), 1),
        (("REVIEW_IN_PROGRESS",), 1),
        (("CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE"), 4),
        (("DELETE_IN_PROGRESS", ""), 2),
        (("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_COMPLETE"), 2),
    ],
)
def test_the_operation_that_a_killed_up_left_is_waited_for(
    statuses: tuple[str, ...], asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.cli.deploying.deployment.SETTLES_POLL_S", 0.0)
    cloudformation = Statuses(*statuses)
    settled(cloudformation)
    assert cloudformation.asked == asked
    assert not is_under_way(cloudformation.last)


def test_an_operation_that_does_not_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.deploying.deployment.SETTLES_WITHIN_S", 0.0)
    with pytest.raises(CommandError, match="stack lab is in UPDATE_IN_PROGRESS for an hour; run holdfast up again"):
        settled(Statuses("UPDATE_IN_PROGRESS"))
