"""What a user is told of a stack whose deployment failed."""

from types import SimpleNamespace

import pytest

from holdfast.cli.commands.environment import diff
from holdfast.cli.deploying import after_failure, refuse_replacements
from holdfast.cli.terminal import CommandError
from holdfast.importing import Deployed


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("UPDATE_ROLLBACK_COMPLETE", "it is as it was before this update; correct the cause and run holdfast up again"),
        ("ROLLBACK_COMPLETE", "nothing of it is deployed; correct the cause"),
        ("UPDATE_ROLLBACK_FAILED", "run: aws cloudformation continue-update-rollback --stack-name lab"),
        ("UPDATE_FAILED", "see: aws cloudformation describe-stack-events --stack-name lab"),
    ],
)
def test_a_failure_ends_with_the_state_of_the_stack_and_what_to_do(status: str, words: str) -> None:
    said = after_failure("lab", status=status)
    assert said.startswith(f"stack lab is in {status}: ")
    assert words in said


def test_diff_and_up_refuse_a_stack_whose_rollback_failed_in_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = Deployed(state="read", environment={}, stack_status="UPDATE_ROLLBACK_FAILED")
    monkeypatch.setattr("holdfast.importing.deployed_environment", lambda **_: stuck)
    monkeypatch.setattr("holdfast.cli.commands.environment.diff._ask", lambda _: stuck)
    definition = SimpleNamespace(cloud="aws", stack_name="holdfast-local", region="us-west-2")
    with pytest.raises(CommandError) as by_up:
        refuse_replacements(definition, SimpleNamespace())  # type: ignore[arg-type]
    with pytest.raises(CommandError) as by_diff:
        diff.diff("local")
    assert str(by_up.value) == str(by_diff.value)
    assert "continue-update-rollback --stack-name holdfast-local" in str(by_up.value)
