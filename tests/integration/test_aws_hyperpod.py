"""The SageMaker HyperPod API of the embedded AWS, asked through boto3, with simulated nodes."""

import json
import urllib.request

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from footing import ready_network, service_role

from holdfast.localcloud.aws import serve


def make_client(aws, service):
    return boto3.client(
        service,
        region_name="us-west-2",
        **aws.client_arguments,
        config=Config(parameter_validation=False, retries={"total_max_attempts": 1}),
    )


@pytest.fixture(scope="module")
def aws(tmp_path_factory):
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as running:
        yield running


@pytest.fixture(scope="module")
def client(aws):
    made = {}

    def get(service):
        return made.setdefault(service, make_client(aws, service))

    yield get
    for one in made.values():
        one.close()


@pytest.fixture(scope="module")
def place(client):
    """VPC, subnet, security group, role and lifecycle script for clusters to refer to."""
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/24", AvailabilityZone="us-west-2a")["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    role = service_role(client("iam"), "nodes")
    ready_network(ec2, vpc=vpc, group=group)
    s3 = client("s3")
    s3.create_bucket(Bucket="sagemaker-lifecycle", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket="sagemaker-lifecycle", Key="lifecycle/abc/on_create.sh", Body=b"#!/bin/sh\n")
    return {"vpc": {"SecurityGroupIds": [group], "Subnets": [subnet]}, "role": role}


@pytest.fixture
def specification(place):
    def group(name, kind, count, **more):
        return {
            "InstanceGroupName": name,
            "InstanceType": "ml.p5.48xlarge" if kind == "Compute" else "ml.m5.xlarge",
            "InstanceCount": count,
            "ExecutionRole": place["role"],
            "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-lifecycle/lifecycle/abc", "OnCreate": "on_create.sh"},
            "SlurmConfig": {"NodeType": kind, **({"PartitionNames": ["dev"]} if kind == "Compute" else {})},
            **more,
        }

    return {
        "ClusterName": "lab",
        "InstanceGroups": [group("controller", "Controller", 1), group("workers", "Compute", 3, ThreadsPerCore=2)],
        "VpcConfig": place["vpc"],
        "Orchestrator": {"Slurm": {"SlurmConfigStrategy": "Managed"}},
        "Tags": [{"Key": "team", "Value": "lab"}],
    }


@pytest.fixture
def cluster(client, specification):
    arn = client("sagemaker").create_cluster(**specification)["ClusterArn"]
    yield arn
    client("sagemaker").delete_cluster(ClusterName=arn)


def nodes_of(client, group=None):
    wanted = {"InstanceGroupNameContains": group} if group else {}
    pages = (
        client("sagemaker")
        .get_paginator("list_cluster_nodes")
        .paginate(ClusterName="lab", PaginationConfig={"PageSize": 2}, **wanted)
    )
    return [node for page in pages for node in page["ClusterNodeSummaries"]]


def refusal(call, **arguments):
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return caught.value.response["Error"]["Code"], caught.value.response["Error"]["Message"]


def test_a_cluster_comes_into_service_with_all_its_settings(client, cluster, specification):
    told = client("sagemaker").describe_cluster(ClusterName="lab")
    workers = told["InstanceGroups"][1]

    assert told["ClusterStatus"] == "InService"
    assert told["ClusterArn"] == cluster
    assert told["VpcConfig"] == specification["VpcConfig"]
    assert told["Orchestrator"] == specification["Orchestrator"]
    assert told["NodeRecovery"] == "Automatic"
    assert (workers["CurrentCount"], workers["TargetCount"], workers["Status"]) == (3, 3, "InService")
    for key in ("InstanceType", "LifeCycleConfig", "SlurmConfig", "ThreadsPerCore", "ExecutionRole"):
        assert workers[key] == specification["InstanceGroups"][1][key]
    assert client("sagemaker").list_tags(ResourceArn=cluster)["Tags"] == specification["Tags"]


def test_nodes_have_readable_addresses_of_their_subnet(client, cluster):
    names = [node["PrivateDnsHostname"] for node in nodes_of(client)]
    node = client("sagemaker").describe_cluster_node(
        ClusterName="lab", NodeId=nodes_of(client, "workers")[0]["InstanceId"]
    )["NodeDetails"]

    assert names == [f"ip-10-1-0-{number}.us-west-2.compute.internal" for number in (10, 11, 12, 13)]
    assert node["PrivatePrimaryIp"] == "10.1.0.11"
    assert node["Placement"] == {"AvailabilityZone": "us-west-2a"}


def test_growing_and_shrinking_a_group_keeps_the_surviving_nodes(client, cluster, specification):
    before = [node["InstanceId"] for node in nodes_of(client, "workers")]
    workers = specification["InstanceGroups"][1]
    sagemaker = client("sagemaker")

    sagemaker.update_cluster(ClusterName="lab", InstanceGroups=[{**workers, "InstanceCount": 5}])
    grown = [node["InstanceId"] for node in nodes_of(client, "workers")]
    sagemaker.update_cluster(ClusterName="lab", InstanceGroups=[{**workers, "InstanceCount": 2}])
    shrunk = [node["InstanceId"] for node in nodes_of(client, "workers")]

    assert grown[:3] == before
    assert len(grown) == 5
    assert shrunk == before[:2]
    assert sagemaker.describe_cluster(ClusterName="lab")["ClusterStatus"] == "InService"


def test_a_group_goes_only_by_name(client, cluster, specification):
    sagemaker = client("sagemaker")
    extra = {**specification["InstanceGroups"][1], "InstanceGroupName": "extra", "InstanceCount": 1}
    sagemaker.update_cluster(ClusterName="lab", InstanceGroups=[extra])
    sagemaker.update_cluster(ClusterName="lab", InstanceGroups=[specification["InstanceGroups"][1]])
    assert len(nodes_of(client, "extra")) == 1

    sagemaker.update_cluster(ClusterName="lab", InstanceGroupsToDelete=["extra"])

    assert nodes_of(client, "extra") == []
    names = [group["InstanceGroupName"] for group in sagemaker.describe_cluster(ClusterName="lab")["InstanceGroups"]]
    assert names == ["controller", "workers"]


def test_a_replaced_node_has_a_new_id_and_the_old_address(client, cluster):
    old = nodes_of(client, "workers")[1]
    answer = client("sagemaker").batch_replace_cluster_nodes(
        ClusterName="lab", NodeIds=[old["InstanceId"], "i-00000000"]
    )
    new = nodes_of(client, "workers")

    assert answer["Successful"] == [old["InstanceId"]]
    assert answer["Failed"][0]["ErrorCode"] == "InstanceIdNotFound"
    assert old["InstanceId"] not in [node["InstanceId"] for node in new]
    assert old["PrivateDnsHostname"] in [node["PrivateDnsHostname"] for node in new]


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda s: s["InstanceGroups"][1].update(InstanceType="ml.p5.49xlarge"), "ValidationException",
         "Value 'ml.p5.49xlarge' at 'instanceGroups.2.member.instanceType' failed to satisfy constraint: "
         "Member must satisfy enum value set: [ml.p5.48xlarge"),
        (lambda s: s["InstanceGroups"].pop(0), "ValidationException", "Cluster must have exactly one InstanceGroup"),
        (lambda s: s["VpcConfig"].update(Subnets=["subnet-0123456789abcdef0"]), "ValidationException",
         "Unable to retrieve subnets"),
        (lambda s: s["VpcConfig"].update(SecurityGroupIds=["sg-0123456789abcdef0"]), "ValidationException",
         "Unable to retrieve security groups"),
        (lambda s: s["InstanceGroups"][0].update(ExecutionRole="arn:aws:iam::123456789012:role/nobody"),
         "ValidationException", "role/nobody does not exist"),
        (lambda s: s["InstanceGroups"][0]["LifeCycleConfig"].update(OnCreate="other.sh"), "ValidationException",
         "Unable to find the lifecycle script 'other.sh' at s3://sagemaker-lifecycle/lifecycle/abc"),
        (lambda s: s["InstanceGroups"][1].update(InstanceCount=300), "ValidationException",
         "do not have enough free IP addresses"),
        (lambda s: s.update(Orchestrator={"Eks": {"ClusterArn": "arn:aws:eks:us-west-2:123456789012:cluster/x"}}),
         "ValidationException", "SlurmConfig of instance group 'controller' requires Orchestrator.Slurm"),
        (lambda s: s.pop("ClusterName"), "ValidationException", "Value null at 'clusterName'"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_in_aws_words(client, specification, change, code, words):
    wanted = json.loads(json.dumps(specification))
    change(wanted)

    said = refusal(client("sagemaker").create_cluster, **wanted)

    assert said[0] == code
    assert words in said[1]
    assert client("sagemaker").list_clusters()["ClusterSummaries"] == []


def test_names_are_taken_once_and_unknown_clusters_are_not_found(client, cluster, specification):
    sagemaker = client("sagemaker")

    assert refusal(sagemaker.create_cluster, **specification)[0] == "ResourceInUse"
    assert refusal(sagemaker.describe_cluster, ClusterName="other")[0] == "ResourceNotFound"
    changed = {**specification["InstanceGroups"][1], "InstanceType": "ml.p4d.24xlarge"}
    assert (
        "InstanceType of the existing"
        in refusal(sagemaker.update_cluster, ClusterName="lab", InstanceGroups=[changed])[1]
    )


def test_what_nobody_implements_says_so(client):
    code, message = refusal(client("sagemaker").list_cluster_operations, ClusterName="lab")

    assert (code, message) == ("NotImplemented", "not implemented by the embedded AWS: sagemaker.ListClusterOperations")


def test_operations_of_sagemaker_outside_hyperpod_are_motos(client):
    assert client("sagemaker").list_models()["Models"] == []


def test_health_is_told(aws):
    with urllib.request.urlopen(f"{aws.endpoint}/_holdfast/health") as answer:
        assert json.load(answer)["ready"] is True
