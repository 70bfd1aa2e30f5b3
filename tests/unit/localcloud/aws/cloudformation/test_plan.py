"""What a deployment decides to do, and in which order it happens."""

import threading
import time
from typing import Any

import pytest

from holdfast.localcloud.aws.cloudformation import deployment, registry
from holdfast.localcloud.aws.cloudformation.deployment import Resource
from holdfast.localcloud.aws.cloudformation.timing import Cancelled, run

SUBNET = "AWS::EC2::Subnet"
PROPERTIES = {"VpcId": "vpc-1", "CidrBlock": "10.0.0.0/24"}


def resource(**changed: Any) -> Resource:
    given: dict[str, Any] = {
        "logical_id": "A",
        "type": SUBNET,
        "definition": {"Type": SUBNET, "Properties": PROPERTIES},
        "needs": set(),
        "physical_id": "subnet-1",
        "properties": PROPERTIES,
        "sent": PROPERTIES,
        "status": "CREATE_COMPLETE",
    }
    return Resource(**(given | changed))


@pytest.mark.parametrize(
    ("current", "changed", "expected"),
    [
        (None, {}, deployment.ResourceStep.CREATE),
        (resource(), {}, deployment.ResourceStep.NOTHING),
        (resource(), {"MapPublicIpOnLaunch": True}, deployment.ResourceStep.UPDATE),
        (resource(), {"CidrBlock": "10.0.1.0/24"}, deployment.ResourceStep.REPLACE),
        (resource(status="UPDATE_FAILED"), {}, deployment.ResourceStep.UPDATE),
        (resource(status="CREATE_FAILED"), {}, deployment.ResourceStep.REPLACE),
        (resource(type="AWS::S3::Bucket"), {}, deployment.ResourceStep.REPLACE),
        (resource(physical_id=""), {}, deployment.ResourceStep.CREATE),
    ],
)
def test_a_step_follows_from_what_differs(current: Resource | None, changed: dict[str, Any], expected: Any) -> None:
    properties = {**PROPERTIES, **changed}

    assert deployment.step(current, SUBNET, properties, properties) is expected


def test_a_change_set_shows_replacement_and_its_cause() -> None:
    properties = {**PROPERTIES, "CidrBlock": "10.0.1.0/24"}

    entry = deployment.change(resource(), {"Type": SUBNET}, "A", properties, properties)

    assert entry is not None
    change = entry["ResourceChange"]
    assert (change["Action"], change["Replacement"], change["Scope"]) == ("Modify", "True", ["Properties"])
    assert change["Details"][0]["Target"]["Name"] == "CidrBlock"
    assert change["Details"][0]["Target"]["RequiresRecreation"] == "Always"


def test_an_unchanged_resource_is_not_in_the_change_set() -> None:
    assert deployment.change(resource(), resource().definition, "A", PROPERTIES, PROPERTIES) is None


def test_tags_of_stack_and_cloudformation_are_added_where_the_type_takes_them() -> None:
    tagged = deployment.with_tags(
        SUBNET, {"Tags": [{"Key": "a", "Value": "own"}]}, {"a": "stack", "b": "1"}, {"aws:x": "y"}
    )

    assert tagged["Tags"] == [{"Key": "a", "Value": "own"}, {"Key": "b", "Value": "1"}, {"Key": "aws:x", "Value": "y"}]
    assert deployment.with_tags("AWS::EC2::Route", {"RouteTableId": "r"}, {"b": "1"}, {}) == {"RouteTableId": "r"}
    assert deployment.with_tags("AWS::SSM::Parameter", {}, {"b": "1"}, {})["Tags"] == {"b": "1"}


@pytest.mark.parametrize(
    ("policy", "creating", "except_on_create", "kept"),
    [
        ("Delete", False, False, False),
        ("Retain", False, False, True),
        ("Retain", True, False, True),
        ("Retain", True, True, False),
        ("RetainExceptOnCreate", False, False, True),
        ("RetainExceptOnCreate", True, False, False),
    ],
)
def test_deletion_policy_decides_what_outlives_the_stack(
    policy: str, creating: bool, except_on_create: bool, kept: bool
) -> None:
    entry = resource(definition={"Type": SUBNET, "DeletionPolicy": policy})

    assert deployment.retained(entry, "DeletionPolicy", creating=creating, except_on_create=except_on_create) is kept


def test_text_becomes_what_the_schema_says() -> None:
    prepared = registry.prepared(SUBNET, {"VpcId": "v", "MapPublicIpOnLaunch": "true", "Ipv4NetmaskLength": "24"})

    assert prepared == {"VpcId": "v", "MapPublicIpOnLaunch": True, "Ipv4NetmaskLength": 24}


def test_a_graph_runs_in_order_and_in_parallel() -> None:
    order: list[str] = []
    both = threading.Barrier(2, timeout=10)

    def work(name: str, _: object) -> None:
        if name in "bc":
            both.wait()
        order.append(name)

    errors = run({"a": set(), "b": {"a"}, "c": {"a"}, "d": {"b", "c"}}, work, stopping=threading.Event())

    assert errors == {}
    assert (order[0], order[-1], set(order)) == ("a", "d", set("abcd"))


def test_a_failure_ends_the_waits_of_the_others_and_starts_nothing_more() -> None:
    started: list[str] = []
    waiting = threading.Event()

    def work(name: str, switch: Any) -> None:
        started.append(name)
        if name == "bad":
            waiting.wait(10)
            raise ValueError(name)
        while True:
            waiting.set()
            switch.pause(0.01)

    errors = run({"bad": set(), "slow": set(), "later": {"slow"}}, work, stopping=threading.Event())

    assert set(started) == {"bad", "slow"}
    assert isinstance(errors["slow"], Cancelled)


def test_going_on_runs_everything_that_does_not_need_the_failed_one() -> None:
    done: list[str] = []

    def work(name: str, _: object) -> None:
        if name == "a":
            raise ValueError(name)
        time.sleep(0)
        done.append(name)

    errors = run({"a": set(), "b": {"a"}, "c": set(), "d": {"c"}}, work, stopping=threading.Event(), go_on=True)

    assert set(errors) == {"a"}
    assert done == ["c", "d"]
