"""What a template keeps stays, by whichever way it would go: an update, a replacement, a rollback, the stack's end."""

from collections.abc import Iterator
from typing import Any

import pytest
from plain_stacks import Cloud, plain_cloud

KEPT = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
BROKEN = {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": "vpc-00000000000000000", "CidrBlock": "10.1.0.0/24"}}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with plain_cloud(tmp_path_factory.mktemp("cloud")) as made:
        yield made


def parameter(name: str, value: str = "a", **policies: str) -> dict[str, Any]:
    return {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Name": name, "Value": value}, **policies}


def there(cloud: Cloud, *names: str) -> list[bool]:
    """Whether each parameter still exists."""
    found = {each["Name"] for each in cloud.client("ssm").get_parameters(Names=list(names))["Parameters"]}
    return [name in found for name in names]


def test_what_an_update_takes_out_of_the_template_goes_only_where_its_policy_lets_it(cloud: Cloud) -> None:
    policies = {"Kept": KEPT, "Deleted": {}, "Replaceable": {"UpdateReplacePolicy": "Retain"}}
    stays = {"Stays": parameter("/removed/Stays")}
    removed = {name: parameter(f"/removed/{name}", **policy) for name, policy in policies.items()}
    cloud.create("removed", {**stays, **removed})

    assert cloud.update("removed", stays)["StackStatus"] == "UPDATE_COMPLETE"

    assert there(cloud, *(f"/removed/{name}" for name in policies)) == [True, False, False]
    assert ("Kept", "DELETE_SKIPPED") in cloud.events("removed")


def test_what_an_update_replaces_goes_only_where_its_policy_lets_it(cloud: Cloud) -> None:
    policies = {"Kept": KEPT, "Deleted": {}, "Removable": {"DeletionPolicy": "Retain"}}

    def named(number: int) -> dict[str, Any]:
        return {name: parameter(f"/replaced/{name}{number}", **policy) for name, policy in policies.items()}

    cloud.create("replaced", named(1))

    assert cloud.update("replaced", named(2))["StackStatus"] == "UPDATE_COMPLETE"

    assert there(cloud, *(f"/replaced/{name}1" for name in policies)) == [True, False, False]
    assert there(cloud, *(f"/replaced/{name}2" for name in policies)) == [True] * 3


def test_what_a_stack_keeps_is_there_after_its_end(cloud: Cloud) -> None:
    cloud.create("ended", {"Kept": parameter("/ended/Kept", **KEPT), "Deleted": parameter("/ended/Deleted")})

    assert cloud.delete("ended")["StackStatus"] == "DELETE_COMPLETE"

    assert there(cloud, "/ended/Kept", "/ended/Deleted") == [True, False]


def test_an_update_that_fails_loses_nothing_of_what_was_there(cloud: Cloud) -> None:
    before = {"Kept": parameter("/failed/Kept", **KEPT), "Plain": parameter("/failed/Plain")}
    cloud.create("failed", before)

    stack = cloud.update("failed", {"Kept": parameter("/failed/Other", **KEPT), "Broken": BROKEN})

    assert stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert there(cloud, "/failed/Kept", "/failed/Plain") == [True, True]
