"""Sessions of the embedded AWS to nodes that are this machine: for what does not depend on namespaces."""

import os
import pty
import socket
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import boto3
from botocore.config import Config
from footing import ready_network, service_role

from holdfast.cli.node_access import SessionApi, SsmNodeAccess
from holdfast.session_manager import ClusterTarget

REGION = "us-west-2"
GROUP = "work-group"


class ThisMachine:
    """Runs what a session starts as the user of the tests."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[bytes]] = []

    def popen(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
    ) -> "subprocess.Popen[bytes]":
        streams = [subprocess.DEVNULL if one is None else one for one in (stdin, stdout, stderr)]
        process = subprocess.Popen(
            list(argv), env={**os.environ, **(env or {})}, stdin=streams[0], stdout=streams[1], stderr=streams[2],
            start_new_session=True, cwd="/",
        )  # fmt: skip
        self.started.append(process)
        return process

    def terminal(self) -> tuple[int, int]:
        return pty.openpty()

    def connect(self, port: int) -> socket.socket:
        return socket.create_connection(("127.0.0.1", port))


def client(aws: Any, service: str) -> Any:
    return boto3.client(
        service,
        region_name=REGION,
        **aws.client_arguments,
        config=Config(parameter_validation=False, retries={"total_max_attempts": 1}),
    )


def target_in_new_cluster(aws: Any, name: str = "sessions") -> ClusterTarget:
    """Create a cluster of one node; its target."""
    ec2 = client(aws, "ec2")
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/24", AvailabilityZone="us-west-2a")["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    role = service_role(client(aws, "iam"), "nodes")
    ready_network(ec2, vpc=vpc, group=group)
    s3 = client(aws, "s3")
    s3.create_bucket(Bucket="sagemaker-lifecycle", CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_object(Bucket="sagemaker-lifecycle", Key="lifecycle/on_create.sh", Body=b"#!/bin/sh\n")
    sagemaker = client(aws, "sagemaker")
    arn = sagemaker.create_cluster(
        ClusterName=name,
        VpcConfig={"SecurityGroupIds": [group], "Subnets": [subnet]},
        InstanceGroups=[
            {
                "InstanceGroupName": GROUP,
                "InstanceType": "ml.c5.large",
                "InstanceCount": 1,
                "ExecutionRole": role,
                "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-lifecycle/lifecycle", "OnCreate": "on_create.sh"},
            }
        ],
    )["ClusterArn"]
    [node] = sagemaker.list_cluster_nodes(ClusterName=name)["ClusterNodeSummaries"]
    return ClusterTarget(cluster_id=arn.rpartition("/")[2], group=GROUP, instance_id=node["InstanceId"])


def access_of(aws: Any, target: ClusterTarget, *, channel_port: int | None = None) -> SsmNodeAccess:
    from botocore import xform_name

    made: dict[str, Any] = {}

    def ask(service: str, operation: str, /, **parameters: Any) -> dict[str, Any]:
        one = made.setdefault(service, client(aws, service))
        answer: dict[str, Any] = getattr(one, xform_name(operation))(**parameters)
        if channel_port is not None and "StreamUrl" in answer:
            answer["StreamUrl"] = answer["StreamUrl"].replace(f":{aws.port}/", f":{channel_port}/")
        return answer

    return SsmNodeAccess(SessionApi(ask), target_of=lambda _node: str(target))
