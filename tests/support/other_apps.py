"""Parts of CDK apps as teams write them, from what ``holdfast_constructs`` exports and nothing else."""

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import assertions
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from holdfast_constructs import (
    EksOrchestrator,
    HyperPodCluster,
    HyperPodNetwork,
    IHyperPodEks,
    IHyperPodNetwork,
    InstanceGroup,
    LifecycleBundle,
    SlurmOrchestrator,
)

ACCOUNT, REGION = "111122223333", "us-west-2"
ENV = cdk.Environment(account=ACCOUNT, region=REGION)


def app() -> cdk.App:
    """An app without what is told to the CDK's makers."""
    return cdk.App(analytics_reporting=False)


def stack(scope: Construct | None = None, name: str = "Team") -> cdk.Stack:
    """A stack with an account and a region, in an app of its own or in a given one."""
    return cdk.Stack(scope or app(), name, env=ENV)


def head(**more: Any) -> InstanceGroup:
    """The Controller group of a Slurm cluster."""
    return InstanceGroup(
        **{
            "name": "head",
            "instance_type": "ml.m5.2xlarge",
            "instance_count": 1,
            "node_type": "Controller",
            **more,
        }
    )


def workers(**more: Any) -> InstanceGroup:
    """A Compute group of a Slurm cluster."""
    return InstanceGroup(
        **{
            "name": "workers",
            "instance_type": "ml.g5.2xlarge",
            "instance_count": 2,
            "node_type": "Compute",
            "partition": "dev",
            **more,
        }
    )


def pods(**more: Any) -> InstanceGroup:
    """A group of a cluster on EKS."""
    return InstanceGroup(**{"name": "pods", "instance_type": "ml.g5.2xlarge", "instance_count": 2, **more})


def there(scope: Construct, construct_id: str = "There") -> IHyperPodNetwork:
    """A network by the ids of its subnet and its group."""
    place = Construct(scope, f"{construct_id}Parts")
    return HyperPodNetwork.from_attributes(
        scope,
        construct_id,
        vpc=ec2.Vpc.from_vpc_attributes(
            place,
            "Vpc",
            vpc_id="vpc-0123456789abcdef0",
            availability_zones=[f"{REGION}a"],
            vpc_cidr_block="10.1.0.0/16",
        ),
        subnet=ec2.Subnet.from_subnet_attributes(
            place, "Subnet", subnet_id="subnet-0123456789abcdef0", availability_zone=f"{REGION}a"
        ),
        security_group=ec2.SecurityGroup.from_security_group_id(place, "Group", "sg-0123456789abcdef0"),
    )


def bundle(scope: Construct, construct_id: str = "Lifecycle", *, folder: Path, **more: Any) -> LifecycleBundle:
    """A lifecycle bundle of two scripts."""
    for hook in ("on_create", "on_init_complete"):
        (folder / f"{hook}.sh").write_text("#!/bin/bash\ntrue\n")
    sources = [folder / "on_create.sh", folder / "on_init_complete.sh"]
    return LifecycleBundle(scope, construct_id, sources=sources, config={}, **more)


def slurm(scope: Construct, construct_id: str = "Cluster", **more: Any) -> HyperPodCluster:
    """A Slurm cluster that HyperPod alone makes ready."""
    arguments: dict[str, Any] = {
        "cluster_name": "research",
        "orchestrator": SlurmOrchestrator(),
        "instance_groups": [head(lifecycle_mode="none"), workers(lifecycle_mode="none")],
    }
    arguments |= {} if "network" in more else {"network": there(scope)}
    return HyperPodCluster(scope, construct_id, **{**arguments, **more})


def kubernetes(
    scope: Construct, control_plane: IHyperPodEks, construct_id: str = "Cluster", **more: Any
) -> HyperPodCluster:
    """A cluster on EKS with scripts that are there already."""
    scripts = LifecycleBundle.from_source_s3_uri(
        scope, f"{construct_id}Scripts", source_s3_uri="s3://sagemaker-team/eks-1.0", on_create="on_create.sh"
    )
    arguments: dict[str, Any] = {
        "cluster_name": "research",
        "orchestrator": EksOrchestrator(control_plane=control_plane),
        "instance_groups": [pods()],
        "lifecycle": scripts,
    }
    arguments |= {} if "network" in more else {"network": there(scope)}
    return HyperPodCluster(scope, construct_id, **{**arguments, **more})


def template(of: cdk.Stack) -> dict[str, Any]:
    """The template of a stack, as plain data."""
    return dict(assertions.Template.from_stack(of).to_json())


def resources(of: cdk.Stack, kind: str) -> dict[str, dict[str, Any]]:
    """The resources of a type, by their logical ids."""
    found = template(of).get("Resources", {})
    return {name: each for name, each in found.items() if each["Type"] == kind}


def one(of: cdk.Stack, kind: str) -> dict[str, Any]:
    """The one resource of a type."""
    (found,) = resources(of, kind).values()
    return found


def text(value: object) -> str:
    """As JSON, to look for something in it."""
    return json.dumps(value)
