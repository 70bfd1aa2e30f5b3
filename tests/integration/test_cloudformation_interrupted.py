"""A deployment that is cut short by the end of the process."""

import json
import time
from pathlib import Path
from typing import Any

import boto3

from holdfast.localcloud.aws import serve

PLACE = {"region_name": "us-west-2"}
VPC = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.1.0.0/16"}}


def settled(stacks: Any, name: str) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        status = str(stacks.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])
        if not status.endswith("_IN_PROGRESS"):
            return status
        time.sleep(0.02)
    raise TimeoutError(name)


def lustre_started(stacks: Any) -> bool:
    events = stacks.describe_stack_events(StackName="cut")["StackEvents"]
    return any(event["LogicalResourceId"] == "Lustre" and event.get("PhysicalResourceId") for event in events)


def test_an_interrupted_deployment_is_rolled_back_at_the_next_start(tmp_path: Path) -> None:
    subnet = {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.1.0.0/24"}}
    lustre = {
        "Type": "AWS::FSx::FileSystem",
        "Properties": {
            "FileSystemType": "LUSTRE",
            "StorageCapacity": 1200,
            "SubnetIds": [{"Ref": "Subnet"}],
            "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
        },
    }
    body = json.dumps({"Resources": {"Vpc": VPC, "Subnet": subnet, "Lustre": lustre}})
    with serve(home=tmp_path, hyperpod="simulated") as running:
        stacks = boto3.client("cloudformation", **PLACE, **running.client_arguments)
        stacks.create_stack(StackName="cut", TemplateBody=body)
        while not lustre_started(stacks):
            time.sleep(0.02)
        stacks.close()

    with serve(home=tmp_path, hyperpod="simulated") as running:
        stacks = boto3.client("cloudformation", **PLACE, **running.client_arguments)
        ec2 = boto3.client("ec2", **PLACE, **running.client_arguments)
        status = settled(stacks, "cut")
        reasons = [
            e.get("ResourceStatusReason", "") for e in stacks.describe_stack_events(StackName="cut")["StackEvents"]
        ]
        left = [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]]
        stack_id = stacks.describe_stacks(StackName="cut")["Stacks"][0]["StackId"]
        stacks.delete_stack(StackName="cut")
        settled(stacks, stack_id)
        stacks.create_stack(StackName="cut", TemplateBody=body)
        again = settled(stacks, "cut")
        stacks.close()
        ec2.close()

    assert status == "ROLLBACK_COMPLETE"
    assert any("interrupted: the embedded AWS was stopped during the operation" in reason for reason in reasons)
    assert left == []
    assert again == "CREATE_COMPLETE"
