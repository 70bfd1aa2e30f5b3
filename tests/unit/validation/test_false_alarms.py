"""What AWS accepts and a rule beside it might report; the mistake itself is the example of that rule."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.validation.pages import Example, findings_of

CLUSTER = "Resources.Cluster"
WORKERS = "cluster.instance_groups.1"
ORDER = ["NodesRoutesOfSubnet", "FromNodes", "ToNodes", "NodesRoute"]
PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/p5"
QUOTA = [{"instance_type": "ml.p5.48xlarge", "instance_count": 40}]
TAINT = {"key": "purpose", "value": "training", "effect": "NoSchedule"}
DENY = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::sagemaker-example/*"}


def trusting(service: Any, **more: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole", **more}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    return {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": document}}


ACCEPTED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "nodes with a NAT route do not wait for the gateway endpoint": (
        "HF041",
        "slurm.template.json",
        {f"{CLUSTER}.DependsOn": ORDER},
    ),
    "EKS has installed its own network plugin": (
        "HF048",
        "eks.template.json",
        {f"{CLUSTER}.DependsOn": [*ORDER, "S3", "Charts", "NodesEntry"]},
    ),
    "a transit gateway is a way out for security groups": (
        "HF206",
        "slurm.template.json",
        {
            "Resources.NodesRoute.Properties.NatGatewayId": None,
            "Resources.NodesRoute.Properties.TransitGatewayId": "tgw-1",
        },
    ),
    "a transit gateway is a way out to S3": (
        "HF211",
        "slurm.template.json",
        {
            "Resources.NodesRoute.Properties.NatGatewayId": None,
            "Resources.NodesRoute.Properties.TransitGatewayId": "tgw-1",
            "Resources.S3": None,
            f"{CLUSTER}.DependsOn": ORDER,
        },
    ),
    "the policy of the network plugin allows the tags": (
        "HF544",
        "slurm.template.json",
        {
            "Resources.Role.Properties.Policies.0.PolicyDocument.Statement.1": None,
            "Resources.Role.Properties.ManagedPolicyArns": [
                "arn:aws:iam::aws:policy/AmazonSageMakerClusterInstanceRolePolicy",
                "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy",
            ],
        },
    ),
    "a training plan has the nodes that were bought": (
        "HF721",
        "slurm.yaml",
        {f"{WORKERS}.spare_count": 0, f"{WORKERS}.training_plan_arn": PLAN},
    ),
    "a minimum of all nodes": ("HF723", "eks.yaml", {f"{WORKERS}.min_instance_count": 17}),
    "a size whose family is in the region": ("HF032", "slurm.yaml", {f"{WORKERS}.instance_type": "ml.trn2.48xlarge"}),
    "a type in a Local Zone": (
        "HF032",
        "slurm.yaml",
        {f"{WORKERS}.instance_type": "ml.p6e-gb200.36xlarge", "network.availability_zone": "us-west-2-phx-2a"},
    ),
    "the name of a Local Zone": (
        "HF210",
        "slurm.template.json",
        {"Resources.NodesSubnet.Properties.AvailabilityZone": "us-west-2-phx-2a"},
    ),
    "groups that Karpenter fills": (
        "HF737",
        "eks.yaml",
        {
            "cluster.auto_scaler": "Karpenter",
            f"{WORKERS}.instance_count": 0,
            f"{WORKERS}.spare_count": 0,
            "eks.task_governance": {"policy": False, "teams": [{"name": "a", "quota": QUOTA}]},
        },
    ),
    "taints beside an EKS cluster of others": (
        "HF352",
        "eks.yaml",
        {
            "eks": {"existing": {"cluster": "platform"}},
            "cluster.instance_groups.0.taints": [TAINT],
            f"{WORKERS}.taints": [TAINT],
        },
    ),
    "a taint that keeps no pod away": (
        "HF352",
        "eks.yaml",
        {f"{WORKERS}.taints": [TAINT], "cluster.instance_groups.0.taints": [TAINT | {"effect": "PreferNoSchedule"}]},
    ),
    "a Deny of what is not encrypted on its way": (
        "HF527",
        "slurm.template.json",
        {
            "Resources.ScriptsPolicy": {
                "Type": "AWS::S3::BucketPolicy",
                "Properties": {
                    "Bucket": "sagemaker-example",
                    "PolicyDocument": {
                        "Version": "2012-10-17",
                        "Statement": [DENY | {"Condition": {"Bool": {"aws:SecureTransport": "false"}}}],
                    },
                },
            }
        },
    ),
    "a boundary of AWS": (
        "HF082",
        "slurm.yaml",
        {"permissions_boundary": "arn:aws:iam::aws:policy/PowerUserAccess"},
    ),
    "a partition of the GPU": ("HF354", "eks.yaml", {f"{WORKERS}.labels": {"nvidia.com/mig.config": "all-1g.10gb"}}),
    "Step Functions of one Region": (
        "HF530",
        "slurm.template.json",
        {
            "Resources.StateRole": trusting({"Fn::Sub": "states.${AWS::Region}.amazonaws.com"}),
            "Resources.Machine": {
                "Type": "AWS::StepFunctions::StateMachine",
                "Properties": {"RoleArn": {"Fn::GetAtt": ["StateRole", "Arn"]}, "DefinitionString": "{}"},
            },
        },
    ),
    "Firehose sends an external id": (
        "HF531",
        "slurm.template.json",
        {
            "Resources.Delivery": trusting(
                "firehose.amazonaws.com", Condition={"StringEquals": {"sts:ExternalId": {"Ref": "AWS::AccountId"}}}
            )
        },
    ),
    "a service with a short name": ("HF531", "slurm.template.json", {"Resources.Ds": trusting("ds.amazonaws.com")}),
    "EC2 sets the host bits of a block to zero": (
        "HF062",
        "slurm.template.json",
        {"Resources.NodesSubnet.Properties.CidrBlock": "10.1.7.0/17"},
    ),
    "mail leaves by ports of its own": (
        "HF230",
        "slurm.template.json",
        {
            "Resources.MailGroup": {
                "Type": "AWS::EC2::SecurityGroup",
                "Properties": {
                    "GroupDescription": "mail",
                    "VpcId": {"Ref": "Vpc"},
                    "SecurityGroupIngress": [
                        {"IpProtocol": "tcp", "FromPort": 587, "ToPort": 587, "CidrIp": "10.1.0.0/16"}
                    ],
                },
            },
            "Resources.Mail": {
                "Type": "AWS::EC2::VPCEndpoint",
                "Properties": {
                    "VpcEndpointType": "Interface",
                    "PrivateDnsEnabled": True,
                    "VpcId": {"Ref": "Vpc"},
                    "SubnetIds": [{"Ref": "NodesSubnet"}],
                    "SecurityGroupIds": [{"Ref": "MailGroup"}],
                    "ServiceName": {"Fn::Sub": "com.amazonaws.${AWS::Region}.email-smtp"},
                },
            },
        },
    ),
    "a topic that lets EventBridge in": (
        "HF823",
        "slurm.template.json",
        {
            "Resources.Alerts": {"Type": "AWS::SNS::Topic"},
            "Resources.AlertsPolicy": {
                "Type": "AWS::SNS::TopicPolicy",
                "Properties": {
                    "Topics": [{"Ref": "Alerts"}],
                    "PolicyDocument": {
                        "Version": "2012-10-17",
                        "Statement": {
                            "Effect": "Allow",
                            "Principal": {"Service": {"Fn::Sub": "events.${AWS::URLSuffix}"}},
                            "Action": "sns:Publish",
                            "Resource": {"Ref": "Alerts"},
                        },
                    },
                },
            },
            "Resources.Events": {
                "Type": "AWS::Events::Rule",
                "Properties": {"ScheduleExpression": "rate(1 day)", "Targets": [{"Id": "a", "Arn": {"Ref": "Alerts"}}]},
            },
        },
    ),
    "a name with a part from Systems Manager": (
        "HF058",
        "slurm.template.json",
        {
            "Resources.Person": {
                "Type": "AWS::IAM::User",
                "Properties": {"UserName": {"Fn::Sub": "dev-{{resolve:ssm:Name:1}}"}},
            }
        },
    ),
    "the name of a Wavelength Zone": ("HF004", "slurm.yaml", {"network.availability_zone": "us-west-2-wl1-sea-wlz-1"}),
}


@pytest.mark.parametrize(("code", "base", "changes"), ACCEPTED.values(), ids=ACCEPTED)
def test_what_aws_accepts_is_no_finding(code: str, base: str, changes: dict[str, Any], tmp_path: Path) -> None:
    found = findings_of(Example(base=base, changes=changes), folder=tmp_path)

    assert [one for one in found if one.code == code and one.severity != "not-checked"] == []


def test_what_no_list_names_is_not_checked(tmp_path: Path) -> None:
    changes = {f"{WORKERS}.instance_type": "ml.trn2.48xlarge"}

    found = findings_of(Example(base="slurm.yaml", changes=changes), folder=tmp_path)

    assert {one.severity for one in found if one.code == "HF032"} == {"not-checked"}


def test_a_cluster_after_an_add_on_that_waits_for_its_nodes_is_a_circle(tmp_path: Path) -> None:
    changes = {
        "Resources.CertManager.DependsOn": [],
        f"{CLUSTER}.DependsOn": [*ORDER, "S3", "Charts", "VpcCni", "CertManager"],
    }

    found = findings_of(Example(base="eks.template.json", changes=changes), folder=tmp_path)

    message = next(one.message for one in found if one.code == "HF045")
    assert "Cluster after CertManager, whose pods wait for nodes" in message


def test_an_add_on_whose_pods_run_on_a_node_group_is_no_circle(tmp_path: Path) -> None:
    properties = {"ClusterName": {"Ref": "ControlPlane"}, "NodeRole": "arn:aws:iam::111122223333:role/eks-nodes"}
    changes = {
        "Resources.NodeGroup": {"Type": "AWS::EKS::Nodegroup", "Properties": properties},
        "Resources.CertManager.DependsOn": [],
        f"{CLUSTER}.DependsOn": [*ORDER, "S3", "Charts", "VpcCni", "CertManager"],
    }

    found = findings_of(Example(base="eks.template.json", changes=changes), folder=tmp_path)

    message = next(one.message for one in found if one.code == "HF045")
    assert "CertManager without DependsOn NodeGroup" in message


def test_a_setting_that_is_missing_is_named_as_what_to_add(tmp_path: Path) -> None:
    existing = {"vpc_id": "vpc-1", "subnet_id": "subnet-1", "security_group_id": "sg-1", "vpc_cidr": "10.1.0.0/16"}
    changes = {"network": {"availability_zone": "us-west-2a", "existing": existing}}

    found = findings_of(Example(base="slurm.yaml", changes=changes), folder=tmp_path)

    fixes = {one.code: one.fix for one in found if one.severity == "not-checked"}
    assert fixes["HF215"] == "add subnet_cidr to the file"
    assert "add subnet_id to the file" not in fixes.values(), "it is there, and only AWS knows more"


@pytest.mark.parametrize(
    "text",
    [
        "while true; do\n  nvidia-smi && break\n  sleep 5\ndone\n",
        "while true; do\n  nvidia-smi >>/var/log/gpus.log\n  sleep 60\ndone &\n",
        "cat >/usr/local/bin/watch.sh <<'EOF'\nwhile true; do\n  sleep 60\ndone\nEOF\n",
        "until systemctl is-active slurmd; do\n  sleep 5\ndone\n",
        "tail -f /var/log/slurmd.log &\n",
    ],
)
def test_a_loop_that_ends_or_is_left_behind_is_no_finding(text: str, tmp_path: Path) -> None:
    example = Example(
        base="slurm.yaml", changes={"lifecycle.scripts": ["wait.sh"]}, files={"wait.sh": f"#!/bin/bash\n{text}"}
    )

    assert "HF525" not in {finding.code for finding in findings_of(example, folder=tmp_path)}
