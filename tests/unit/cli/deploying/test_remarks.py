"""What `holdfast up` lists as not being on this machine."""

from typing import Any

from holdfast.cli.deploying import not_here


def event(name: str, status: str, reason: str = "", *, kind: str = "AWS::EKS::Addon") -> dict[str, Any]:
    return {
        "LogicalResourceId": name,
        "ResourceType": kind,
        "ResourceStatus": status,
        **({"ResourceStatusReason": reason} if reason else {}),
    }


def test_what_finished_resources_lack_is_listed() -> None:
    newest_first = [
        event("stack", "CREATE_COMPLETE", "its own", kind="AWS::CloudFormation::Stack"),
        event("B", "CREATE_COMPLETE", "add-on b is recorded alone"),
        event("A", "CREATE_COMPLETE", "add-on a is recorded alone"),
        event("C", "CREATE_COMPLETE"),
        event("A", "CREATE_IN_PROGRESS", "Resource creation Initiated"),
    ]

    assert not_here(newest_first) == ["add-on a is recorded alone", "add-on b is recorded alone"]


def test_what_is_there_by_now_or_gone_is_not_listed() -> None:
    newest_first = [
        event("A", "UPDATE_COMPLETE"),
        event("B", "DELETE_COMPLETE"),
        event("B", "CREATE_COMPLETE", "b is missing"),
        event("A", "CREATE_COMPLETE", "a is missing"),
    ]

    assert not_here(newest_first) == []
