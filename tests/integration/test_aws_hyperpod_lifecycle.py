"""The lifecycle of groups in the SageMaker API: three modes, told back as given, and the guide's messages in words."""

import pytest
from botocore.exceptions import ClientError
from footing import ready_network, service_role
from unchecked_clients import unchecked_clients

URI = "s3://sagemaker-lifecycle/abc"
CUSTOM = {"SourceS3Uri": URI, "OnCreate": "on_create.sh"}
EXTENSION = {"SourceS3Uri": URI, "OnInitComplete": "on_init_complete.sh"}
LUSTRE = {"FsxLustreConfig": {"DnsName": "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com", "MountName": "abcdefgh"}}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with unchecked_clients(tmp_path_factory.mktemp("cloud")) as client:
        yield client


@pytest.fixture(scope="module")
def place(client):
    """A network, a role, the scripts of both modes, and an AMI that is older than AMI-based configuration."""
    ec2, s3 = client("ec2"), client("s3")
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/24", AvailabilityZone="us-west-2a")["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    role = service_role(client("iam"), "nodes")
    ready_network(ec2, vpc=vpc, group=group)
    s3.create_bucket(Bucket="sagemaker-lifecycle", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    for name in ("on_create.sh", "on_init_complete.sh"):
        s3.put_object(Bucket="sagemaker-lifecycle", Key=f"abc/{name}", Body=b"#!/bin/sh\n")
    old = ec2.register_image(Name="Deep Learning Base GPU AMI (Ubuntu 22.04) 20250523")["ImageId"]
    return {"vpc": {"SecurityGroupIds": [group], "Subnets": [subnet]}, "role": role, "old": old}


@pytest.fixture
def request_of(place):
    """A request of CreateCluster whose groups have these lifecycles; None leaves it out."""

    def made(head, workers):
        kinds = {"head": {"NodeType": "Controller"}, "workers": {"NodeType": "Compute", "PartitionNames": ["dev"]}}
        groups = [
            {
                "InstanceGroupName": name,
                "InstanceType": "ml.m5.xlarge",
                "InstanceCount": 1,
                "ExecutionRole": place["role"],
                "SlurmConfig": kinds[name],
                **({"LifeCycleConfig": dict(lifecycle)} if lifecycle is not None else {}),
            }
            for name, lifecycle in (("head", head), ("workers", workers))
        ]
        return {
            "ClusterName": "lab",
            "InstanceGroups": groups,
            "VpcConfig": place["vpc"],
            "Orchestrator": {"Slurm": {}},
        }

    return made


@pytest.fixture
def clean(client):
    yield
    sagemaker = client("sagemaker")
    for cluster in sagemaker.list_clusters()["ClusterSummaries"]:
        sagemaker.delete_cluster(ClusterName=cluster["ClusterName"])


def lifecycles(client):
    told = client("sagemaker").describe_cluster(ClusterName="lab")["InstanceGroups"]
    return [group.get("LifeCycleConfig") for group in told]


def refusal(call, **arguments):
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    error = caught.value.response["Error"]
    assert error["Code"] == "ValidationException"
    return error["Message"]


@pytest.mark.parametrize("lifecycle", [None, EXTENSION, CUSTOM], ids=["none", "extension", "custom"])
def test_each_mode_is_told_back_as_it_was_given(client, request_of, clean, lifecycle):
    client("sagemaker").create_cluster(**request_of(lifecycle, lifecycle))

    assert lifecycles(client) == [lifecycle, lifecycle]


def test_modes_are_mixed_and_changed(client, request_of, clean):
    sagemaker = client("sagemaker")
    sagemaker.create_cluster(**request_of(None, EXTENSION))
    before = lifecycles(client)
    node = sagemaker.list_cluster_nodes(ClusterName="lab", InstanceGroupNameContains="workers")["ClusterNodeSummaries"][
        0
    ]
    shown = sagemaker.describe_cluster_node(ClusterName="lab", NodeId=node["InstanceId"])["NodeDetails"]

    sagemaker.update_cluster(ClusterName="lab", InstanceGroups=request_of(None, CUSTOM)["InstanceGroups"])

    assert (before, lifecycles(client)) == ([None, EXTENSION], [None, CUSTOM])
    assert shown["LifeCycleConfig"] == EXTENSION


def both(request, place):
    request["InstanceGroups"][1]["LifeCycleConfig"] = {**CUSTOM, **EXTENSION}


def without_uri(request, place):
    del request["InstanceGroups"][1]["LifeCycleConfig"]["SourceS3Uri"]


def empty(request, place):
    request["InstanceGroups"][1]["LifeCycleConfig"] = {}


def old_image(request, place):
    request["InstanceGroups"][1]["ImageId"] = place["old"]


def partition_of_head(request, place):
    request["InstanceGroups"][0]["SlurmConfig"]["PartitionNames"] = ["dev"]


def second_controller(request, place):
    request["InstanceGroups"].append({**request["InstanceGroups"][0], "InstanceGroupName": "second"})


MESSAGES = [
    (second_controller, "Cluster must have exactly one InstanceGroup with Controller node type"),
    (partition_of_head, "Partitions can only be assigned to Compute node types"),
    (both, "OnCreate and OnInitComplete in LifeCycleConfig are mutually exclusive"),
    (without_uri, "LifeCycleConfig for instance group is incomplete"),
    (old_image, "LifeCycleConfig is optional but requires a compatible AMI"),
    (empty, "LifeCycleConfig for instance group is provided but contains no configuration"),
]
"""As the guide quotes them; FSx without a VPC is told apart below, because a cluster cannot lose its VPC."""


@pytest.mark.parametrize(("change", "message"), MESSAGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_mistake_is_refused_at_creation_in_the_words_of_the_guide(client, place, request_of, clean, change, message):
    wanted = request_of(EXTENSION, EXTENSION)
    change(wanted, place)

    assert refusal(client("sagemaker").create_cluster, **wanted).startswith(message)
    assert client("sagemaker").list_clusters()["ClusterSummaries"] == []


@pytest.mark.parametrize(("change", "message"), MESSAGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_mistake_is_refused_at_an_update_in_the_same_words(client, place, request_of, clean, change, message):
    sagemaker = client("sagemaker")
    sagemaker.create_cluster(**request_of(EXTENSION, EXTENSION))
    wanted = request_of(EXTENSION, EXTENSION)
    change(wanted, place)
    del wanted["VpcConfig"]

    assert refusal(sagemaker.update_cluster, **wanted).startswith(message)
    assert lifecycles(client) == [EXTENSION, EXTENSION]


def test_file_systems_of_fsx_need_a_network_of_ones_own(client, request_of, clean):
    sagemaker, wanted = client("sagemaker"), request_of(None, None)
    del wanted["VpcConfig"]
    sagemaker.create_cluster(**wanted)
    wanted["InstanceGroups"][1]["InstanceStorageConfigs"] = [LUSTRE]
    message = "FSx configurations are only supported for Custom VPC"

    assert refusal(sagemaker.create_cluster, **{**wanted, "ClusterName": "other"}) == message
    assert refusal(sagemaker.update_cluster, **wanted) == message


def test_a_script_that_is_not_there_is_missed_in_both_modes(client, request_of, clean):
    for lifecycle, script in ((CUSTOM, "OnCreate"), (EXTENSION, "OnInitComplete")):
        wanted = request_of({**lifecycle, script: "other.sh"}, None)
        assert "Unable to find the lifecycle script 'other.sh'" in refusal(client("sagemaker").create_cluster, **wanted)


def test_slurm_is_configured_by_the_api_or_by_a_file_and_not_by_both(client, request_of, clean):
    client("s3").put_object(Bucket="sagemaker-lifecycle", Key="both/on_create.sh", Body=b"#!/bin/sh\n")
    client("s3").put_object(Bucket="sagemaker-lifecycle", Key="both/provisioning_parameters.json", Body=b"{}")
    wanted = request_of({**CUSTOM, "SourceS3Uri": "s3://sagemaker-lifecycle/both"}, None)

    assert refusal(client("sagemaker").create_cluster, **wanted) == (
        "The LifeCycleConfig cannot include both a SLURM Orchestrator Config and a provisioning_parameters.json file "
        "simultaneously."
    )


def test_a_bucket_of_another_name_is_taken_because_only_the_managed_policy_of_the_role_minds(client, request_of, clean):
    s3 = client("s3")
    s3.create_bucket(Bucket="team-scripts", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket="team-scripts", Key="abc/on_init_complete.sh", Body=b"#!/bin/sh\n")
    lifecycle = {**EXTENSION, "SourceS3Uri": "s3://team-scripts/abc"}

    client("sagemaker").create_cluster(**request_of(lifecycle, lifecycle))

    assert lifecycles(client) == [lifecycle, lifecycle]
