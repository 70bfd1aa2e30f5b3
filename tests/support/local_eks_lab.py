"""A local EKS made by operations of the embedded AWS: a cluster, a HyperPod cluster on it, and three roles."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from aws_nodes import PYTHONS
from footing import ready_network, service_role
from local_eks import LocalEks
from waiting import eventually

from holdfast.localcloud.aws import serve
from holdfast.localcloud.hyperpod import ControlPlane
from holdfast.localcloud.kubernetes import Binaries
from holdfast.localcloud.nodes import Fleet

REGION, NAME, HYPERPOD = "us-west-2", "clients", "clients-hyperpod"
POLICIES = "arn:aws:eks::aws:cluster-access-policy/"
IMAGE = "holdfast.local/node:1"
ON_CREATE = b"#!/bin/bash\nset -eu\ntrue\n"
MADE_WITHIN_S = 300.0


@contextmanager
def running_eks(home: Path, *, binaries: Callable[[], Binaries | None], nodes: int) -> Iterator[LocalEks]:
    """A local EKS with nodes that are Ready; nothing of it is left at the end."""
    aws = serve(home=home, port=0)
    os.environ.update(PYTHONS)
    plane = ControlPlane(home=home, endpoint=aws.endpoint, region=REGION, binaries=binaries)
    thread = threading.Thread(target=plane.run)
    thread.start()

    def client(service: str) -> Any:
        return boto3.client(service, region_name=REGION, **aws.client_arguments)

    try:
        yield _made(home, client=client, endpoint=aws.endpoint, keys=aws.client_arguments, nodes=nodes)
    finally:
        try:
            _removed(client)
        finally:
            plane.stop()
            thread.join(60)
            aws.stop()
            Fleet(home=home).close()


def _made(home: Path, *, client: Callable[[str], Any], endpoint: str, keys: dict[str, str], nodes: int) -> LocalEks:
    service = service_role(client("iam"), "clients-service")
    roles = {who: _person(client("iam"), f"clients-{who}") for who in ("admin", "viewer", "other")}
    subnets, group = _network(client("ec2"))
    client("s3").create_bucket(Bucket="sagemaker-clients", CreateBucketConfiguration={"LocationConstraint": REGION})
    client("s3").put_object(Bucket="sagemaker-clients", Key="lifecycle/on_create.sh", Body=ON_CREATE)
    arn = _cluster(client("eks"), role=service, subnets=subnets, roles=roles)
    _hyperpod(client("sagemaker"), arn=arn, role=service, subnets=subnets, group=group, nodes=nodes)
    return LocalEks(
        home=home,
        endpoint=endpoint,
        region=REGION,
        variables={
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": keys["aws_access_key_id"],
            "AWS_SECRET_ACCESS_KEY": keys["aws_secret_access_key"],
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        },
        eks_cluster=NAME,
        hyperpod_cluster=HYPERPOD,
        admin_role=roles["admin"],
        view_role=roles["viewer"],
        other_role=roles["other"],
        fabric=Fleet(home=home).fabric.path,
        image=IMAGE,
    )


def _person(iam: Any, name: str) -> str:
    """A role that the account's owner may assume, and that may ask AWS for anything."""
    account = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [account]})
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    rights = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    iam.put_role_policy(RoleName=name, PolicyName="everything", PolicyDocument=json.dumps(rights))
    return str(made)


def _network(ec2: Any) -> tuple[list[str], str]:
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.1.{number}.0/24", AvailabilityZone=f"{REGION}{zone}")["Subnet"][
            "SubnetId"
        ]
        for number, zone in enumerate("ab")
    ]
    group = ec2.create_security_group(GroupName="clients", Description="clients", VpcId=vpc)["GroupId"]
    ready_network(ec2, vpc=vpc, group=group)
    return subnets, group


def _cluster(eks: Any, *, role: str, subnets: list[str], roles: dict[str, str]) -> str:
    eks.create_cluster(
        name=NAME,
        roleArn=role,
        accessConfig={"authenticationMode": "API"},
        resourcesVpcConfig={"subnetIds": subnets},
    )
    eventually(
        lambda: eks.describe_cluster(name=NAME)["cluster"]["status"] == "ACTIVE", "the cluster", within_s=MADE_WITHIN_S
    )
    for who, policy in (("admin", "AmazonEKSClusterAdminPolicy"), ("viewer", "AmazonEKSViewPolicy")):
        entry = {"clusterName": NAME, "principalArn": roles[who]}
        eks.create_access_entry(**entry)
        eks.associate_access_policy(**entry, policyArn=f"{POLICIES}{policy}", accessScope={"type": "cluster"})
    eks.create_addon(clusterName=NAME, addonName="coredns")
    return str(eks.describe_cluster(name=NAME)["cluster"]["arn"])


def _hyperpod(sagemaker: Any, *, arn: str, role: str, subnets: list[str], group: str, nodes: int) -> None:
    workers = {
        "InstanceGroupName": "workers",
        "InstanceType": "ml.p5.48xlarge",
        "InstanceCount": nodes,
        "ExecutionRole": role,
        "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-clients/lifecycle", "OnCreate": "on_create.sh"},
    }
    sagemaker.create_cluster(
        ClusterName=HYPERPOD,
        InstanceGroups=[workers],
        VpcConfig={"SecurityGroupIds": [group], "Subnets": subnets[:1]},
        Orchestrator={"Eks": {"ClusterArn": arn}},
        NodeRecovery="Automatic",
    )

    def ready() -> bool:
        told = sagemaker.describe_cluster(ClusterName=HYPERPOD)
        assert told["ClusterStatus"] != "Failed", told.get("FailureMessage")
        return bool(told["ClusterStatus"] == "InService")

    eventually(ready, "the HyperPod cluster", within_s=MADE_WITHIN_S)


def _removed(client: Callable[[str], Any]) -> None:
    sagemaker, eks = client("sagemaker"), client("eks")
    if HYPERPOD in [one["ClusterName"] for one in sagemaker.list_clusters()["ClusterSummaries"]]:
        sagemaker.delete_cluster(ClusterName=HYPERPOD)
        eventually(lambda: not sagemaker.list_clusters()["ClusterSummaries"], "its end", within_s=MADE_WITHIN_S)
    if NAME in eks.list_clusters()["clusters"]:
        for addon in eks.list_addons(clusterName=NAME)["addons"]:
            eks.delete_addon(clusterName=NAME, addonName=addon)
        eks.delete_cluster(name=NAME)
        eventually(lambda: not eks.list_clusters()["clusters"], "the cluster's end", within_s=MADE_WITHIN_S)
