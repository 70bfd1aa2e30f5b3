"""Everything that CreateCluster takes, told back by DescribeCluster, and what it refuses in the service's words."""

import json

import pytest
from botocore.exceptions import ClientError
from footing import ready_network, service_role
from unchecked_clients import unchecked_clients
from waiting import eventually

LIFECYCLE = {"SourceS3Uri": "s3://sagemaker-lifecycle/abc", "OnCreate": "on_create.sh"}
BATCH = {"RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 1}}}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with unchecked_clients(tmp_path_factory.mktemp("cloud")) as client:
        yield client


@pytest.fixture(scope="module")
def place(client):
    """A network in two zones, a role, a lifecycle script, an alarm, and two EKS clusters."""
    ec2, eks = client("ec2"), client("eks")
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.1.{number}.0/24", AvailabilityZone=f"us-west-2{zone}")["Subnet"][
            "SubnetId"
        ]
        for number, zone in enumerate("ab")
    ]
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    role = service_role(client("iam"), "nodes")
    ready_network(ec2, vpc=vpc, group=group)
    s3 = client("s3")
    s3.create_bucket(Bucket="sagemaker-lifecycle", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket="sagemaker-lifecycle", Key="abc/on_create.sh", Body=b"#!/bin/sh\n")
    client("cloudwatch").put_metric_alarm(
        AlarmName="errors",
        Namespace="n",
        MetricName="m",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )
    arns = {}
    for name, version, mode in (("lab", "1.33", "API"), ("new", "1.36", "API"), ("old", "1.33", "CONFIG_MAP")):
        eks.create_cluster(
            name=name,
            version=version,
            roleArn=role,
            accessConfig={"authenticationMode": mode},
            resourcesVpcConfig={"subnetIds": subnets},
        )
        eks.get_waiter("cluster_active").wait(name=name, WaiterConfig={"Delay": 0.05})
        arns[name] = eks.describe_cluster(name=name)["cluster"]["arn"]
    return {"vpc": {"SecurityGroupIds": [group], "Subnets": subnets[:1]}, "role": role, "eks": arns}


def group(place, name, count, **more):
    kind = {} if "InstanceRequirements" in more else {"InstanceType": "ml.p5.48xlarge"}
    base = {"InstanceGroupName": name, "InstanceCount": count, "ExecutionRole": place["role"], **kind}
    return {**base, "LifeCycleConfig": LIFECYCLE, **more}


@pytest.fixture
def on_eks(place):
    return {
        "ClusterName": "lab",
        "VpcConfig": place["vpc"],
        "Orchestrator": {"Eks": {"ClusterArn": place["eks"]["lab"]}},
        "NodeRecovery": "Automatic",
        "NodeProvisioningMode": "Continuous",
        "AutoScaling": {"Mode": "Enable", "AutoScalerType": "Karpenter"},
        "ClusterRole": place["role"],
        "TieredStorageConfig": {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 20},
        "InstanceGroups": [
            group(
                place,
                "flexible",
                2,
                MinInstanceCount=1,
                InstanceRequirements={"InstanceTypes": ["ml.p5.48xlarge", "ml.p5en.48xlarge"]},
                CapacityRequirements={"Spot": {}},
                KubernetesConfig={
                    "Labels": {"pool": "a"},
                    "Taints": [{"Key": "gpu", "Value": "true", "Effect": "NoSchedule"}],
                },
            ),
            group(
                place,
                "workers",
                2,
                OnStartDeepHealthChecks=["InstanceStress", "MultiNodeTrainingValidation"],
                ScheduledUpdateConfig={
                    "ScheduleExpression": "cron(0 0 ? * SUN *)",
                    "DeploymentConfig": {**BATCH, "AutoRollbackConfiguration": [{"AlarmName": "errors"}]},
                },
                AutoPatchConfig={"PatchingStrategy": "DrainFirst", "DeploymentConfig": BATCH},
                NetworkInterface={"InterfaceType": "efa-only"},
                ImageReleaseVersion="1.2.3",
            ),
        ],
    }


@pytest.fixture
def on_slurm(place):
    head = group(place, "head", 1, SlurmConfig={"NodeType": "Controller"}, InstanceType="ml.m5.xlarge")
    workers = group(place, "workers", 2, SlurmConfig={"NodeType": "Compute", "PartitionNames": ["dev"]})
    return {
        "ClusterName": "lab",
        "VpcConfig": place["vpc"],
        "Orchestrator": {"Slurm": {"SlurmConfigStrategy": "Managed"}},
        "InstanceGroups": [head, workers],
    }


@pytest.fixture
def clean(client):
    yield
    for found in client("sagemaker").list_clusters()["ClusterSummaries"]:
        client("sagemaker").delete_cluster(ClusterName=found["ClusterName"])


def refusal(client, settings):
    with pytest.raises(ClientError) as caught:
        client("sagemaker").create_cluster(**settings)
    return caught.value.response["Error"]["Message"]


def test_a_cluster_on_eks_tells_back_every_setting(client, on_eks, clean):
    sagemaker = client("sagemaker")
    sagemaker.create_cluster(**on_eks)
    told = sagemaker.describe_cluster(ClusterName="lab")
    flexible, workers = told["InstanceGroups"]

    for key in ("Orchestrator", "NodeProvisioningMode", "ClusterRole", "TieredStorageConfig", "NodeRecovery"):
        assert told[key] == on_eks[key]
    assert told["AutoScaling"] == {"Mode": "Enable", "AutoScalerType": "Karpenter", "Status": "InService"}
    assert flexible["InstanceRequirements"]["CurrentInstanceTypes"] == ["ml.p5.48xlarge", "ml.p5en.48xlarge"]
    assert flexible["MinCount"] == 1
    assert flexible["KubernetesConfig"]["DesiredLabels"] == {"pool": "a"}
    assert flexible["KubernetesConfig"]["CurrentTaints"][0]["Key"] == "gpu"
    assert "Spot" in flexible["CapacityRequirements"]
    given = on_eks["InstanceGroups"][1]
    for key in ("OnStartDeepHealthChecks", "ScheduledUpdateConfig", "AutoPatchConfig", "NetworkInterface"):
        assert workers[key] == given[key]
    assert workers["CurrentImageReleaseVersion"] == "1.2.3"


def test_continuous_provisioning_is_in_service_before_its_nodes(client, on_eks, clean):
    sagemaker = client("sagemaker")
    sagemaker.create_cluster(**on_eks)
    early = sagemaker.list_clusters()["ClusterSummaries"][0]["ClusterStatus"]
    statuses = [node["InstanceStatus"]["Status"] for node in nodes(sagemaker)]
    while any(node["InstanceStatus"]["Status"] != "Running" for node in nodes(sagemaker)):
        pass

    assert (early, set(statuses)) == ("InService", {"Pending"})
    assert sagemaker.describe_cluster(ClusterName="lab")["InstanceGroups"][0]["Status"] == "InService"


def nodes(sagemaker):
    return sagemaker.list_cluster_nodes(ClusterName="lab")["ClusterNodeSummaries"]


def test_restricted_groups_are_listed_apart_and_updated(client, place, on_eks, clean):
    del on_eks["NodeProvisioningMode"], on_eks["AutoScaling"], on_eks["ClusterRole"]
    restricted = {
        "InstanceGroupName": "nova",
        "InstanceCount": 2,
        "InstanceType": "ml.p5.48xlarge",
        "ExecutionRole": place["role"],
        "EnvironmentConfig": {"FSxLustreConfig": {"SizeInGiB": 2400, "PerUnitStorageThroughput": 250}},
    }
    lustre = {"SizeInGiB": 1200, "PerUnitStorageThroughput": 250}
    shared = {"SharedEnvironmentConfig": {"FSxLustreDeletionPolicy": "Keep", "FSxLustreConfig": lustre}}
    wanted = {
        **on_eks,
        "InstanceGroups": on_eks["InstanceGroups"][1:],
        "RestrictedInstanceGroups": [restricted],
        "RestrictedInstanceGroupsConfig": shared,
    }
    sagemaker = client("sagemaker")
    sagemaker.create_cluster(**wanted)
    sagemaker.update_cluster(ClusterName="lab", RestrictedInstanceGroups=[{**restricted, "InstanceCount": 3}])
    told = sagemaker.describe_cluster(ClusterName="lab")

    assert [one["InstanceGroupName"] for one in told["InstanceGroups"]] == ["workers"]
    assert told["RestrictedInstanceGroups"][0]["CurrentCount"] == 3
    assert told["RestrictedInstanceGroups"][0]["EnvironmentConfig"] == restricted["EnvironmentConfig"]
    environment = told["RestrictedInstanceGroupsConfig"]["SharedEnvironmentConfig"]
    assert (environment["CurrentFSxLustreDeletionPolicy"], environment["CurrentFSxLustreConfig"]) == ("Keep", lustre)


def test_software_is_updated_in_the_named_groups_alone(client, on_slurm, clean):
    sagemaker = client("sagemaker")
    sagemaker.create_cluster(**on_slurm)
    before = [node["InstanceId"] for node in nodes(sagemaker)]
    groups = [{"InstanceGroupName": "workers", "ImageReleaseVersion": "2.0.0"}]
    sagemaker.update_cluster_software(ClusterName="lab", InstanceGroups=groups)
    told = sagemaker.describe_cluster(ClusterName="lab")

    assert [node["InstanceId"] for node in nodes(sagemaker)] == before
    assert told["ClusterStatus"] == "InService"
    assert "CurrentImageReleaseVersion" not in told["InstanceGroups"][0]
    assert told["InstanceGroups"][1]["CurrentImageReleaseVersion"] == "2.0.0"
    assert told["InstanceGroups"][1]["SoftwareUpdateStatus"] == "Succeeded"
    with pytest.raises(ClientError, match="Instance group 'none' does not exist"):
        sagemaker.update_cluster_software(ClusterName="lab", InstanceGroups=[{"InstanceGroupName": "none"}])


BATCHES = {
    "RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 1}},
    "WaitIntervalInSeconds": 3600,
    "AutoRollbackConfiguration": [{"AlarmName": "errors"}],
}


@pytest.mark.documented("HP-121")
def test_an_alarm_in_the_wait_after_a_batch_rolls_the_group_back(client, on_eks, clean):
    sagemaker, cloudwatch = client("sagemaker"), client("cloudwatch")
    cloudwatch.set_alarm_state(AlarmName="errors", StateValue="OK", StateReason="a test")
    sagemaker.create_cluster(**on_eks)
    groups = [{"InstanceGroupName": "workers", "ImageReleaseVersion": "2.0.0"}]
    eventually(lambda: {node["InstanceStatus"]["Status"] for node in nodes(sagemaker)} == {"Running"})
    sagemaker.update_cluster_software(ClusterName="lab", InstanceGroups=groups, DeploymentConfig=BATCHES)
    try:
        assert software(sagemaker) == ("SystemUpdating", "InProgress")
        assert sorted(versions(sagemaker)) == ["1.2.3", "2.0.0"], "one batch of one"
        cloudwatch.set_alarm_state(AlarmName="errors", StateValue="ALARM", StateReason="a test")
        assert software(sagemaker) == ("InService", "RollbackComplete")
    finally:
        cloudwatch.set_alarm_state(AlarmName="errors", StateValue="OK", StateReason="a test")
    told = sagemaker.describe_cluster(ClusterName="lab")
    assert told["FailureMessage"] == "The alarm 'errors' of AutoRollbackConfiguration is in ALARM state."
    assert versions(sagemaker) == ["1.2.3", "1.2.3"]


@pytest.mark.documented("HP-121")
def test_slurm_has_no_batches(client, on_slurm, clean):
    sagemaker = client("sagemaker")
    sagemaker.create_cluster(**on_slurm)
    with pytest.raises(ClientError, match="batches are available with Amazon EKS only"):
        sagemaker.update_cluster_software(ClusterName="lab", DeploymentConfig={"WaitIntervalInSeconds": 1})


def software(sagemaker):
    told = sagemaker.describe_cluster(ClusterName="lab")
    group = next(one for one in told["InstanceGroups"] if one["InstanceGroupName"] == "workers")
    return told["ClusterStatus"], group["SoftwareUpdateStatus"]


def versions(sagemaker):
    details = [
        sagemaker.describe_cluster_node(ClusterName="lab", NodeId=node["InstanceId"])["NodeDetails"]
        for node in nodes(sagemaker)
        if node["InstanceGroupName"] == "workers"
    ]
    return [one.get("CurrentImageReleaseVersion", "") for one in details]


def test_what_orchestrates_a_cluster_stays(client, place, on_slurm, clean):
    sagemaker = client("sagemaker")
    sagemaker.create_cluster(**on_slurm)

    with pytest.raises(ClientError, match="orchestrator of an existing cluster cannot be changed"):
        sagemaker.update_cluster(ClusterName="lab", Orchestrator={"Eks": {"ClusterArn": place["eks"]["lab"]}})


def worker(settings, **changes):
    """Change the second group; None takes a setting away."""
    one = settings["InstanceGroups"][1]
    one.update(changes)
    for key in [key for key, value in changes.items() if value is None]:
        del one[key]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("VpcConfig"), "VpcConfig must be specified when Orchestrator is Eks"),
        (lambda s: s["Orchestrator"]["Eks"].update(ClusterArn=s["Orchestrator"]["Eks"]["ClusterArn"][:-3] + "none"),
         "Unable to find the EKS cluster"),
        (lambda s: s["Orchestrator"]["Eks"].update(ClusterArn=s["Orchestrator"]["Eks"]["ClusterArn"][:-3] + "new"),
         "Kubernetes version 1.36. Supported are 1.30 to 1.35"),
        (lambda s: s["Orchestrator"]["Eks"].update(ClusterArn=s["Orchestrator"]["Eks"]["ClusterArn"][:-3] + "old"),
         "authentication mode CONFIG_MAP"),
        (lambda s: s["Orchestrator"].update(Slurm={}), "Exactly one of Eks or Slurm must be specified"),
        (lambda s: worker(s, SlurmConfig={"NodeType": "Compute"}), "requires Orchestrator.Slurm"),
        (lambda s: worker(s, LifeCycleConfig=None), "LifeCycleConfig is required for instance group workers"),
        (lambda s: worker(s, MinInstanceCount=3), "MinInstanceCount must not exceed InstanceCount"),
        (lambda s: worker(s, InstanceRequirements={"InstanceTypes": ["ml.p5.48xlarge"]}),
         "Exactly one of InstanceType or InstanceRequirements"),
        (lambda s: worker(s, AutoPatchConfig={"PatchingStrategy": "DrainFirst"}), "requires a MaximumBatchSize"),
        (lambda s: worker(s, KubernetesConfig={"Taints": [{"Key": "a", "Effect": "NoSchedule"}]}),
         "cannot have custom taints together with OnStartDeepHealthChecks"),
        (lambda s: s["InstanceGroups"][1]["ScheduledUpdateConfig"]["DeploymentConfig"].update(
            AutoRollbackConfiguration=[{"AlarmName": "none"}]), "The CloudWatch alarm 'none'"),
        (lambda s: s.pop("ClusterRole"), "AutoScaling requires a ClusterRole"),
        (lambda s: s.update(NodeRecovery="None"), "AutoScaling requires NodeRecovery Automatic"),
        (lambda s: s.pop("NodeProvisioningMode"), "AutoScaling requires Orchestrator.Eks and NodeProvisioningMode"),
        (lambda s: (s.pop("NodeProvisioningMode"), s.pop("AutoScaling")), "Spot capacity of instance group 'flexible'"),
        (lambda s: s.update(RestrictedInstanceGroups=[{
            "InstanceGroupName": "nova", "InstanceCount": 1, "InstanceType": "ml.p5.48xlarge",
            "ExecutionRole": s["ClusterRole"]}]), "cannot be combined with NodeProvisioningMode Continuous"),
        (lambda s: s["InstanceGroups"][0].update(InstanceGroupName="workers"), "duplicate instance group names"),
    ],
)  # fmt: skip
def test_what_cannot_work_on_eks_is_refused(client, on_eks, change, words):
    change(on_eks)
    assert words in refusal(client, on_eks)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: worker(s, SlurmConfig={"NodeType": "Controller"}), "Cluster must have exactly one InstanceGroup"),
        (lambda s: worker(s, SlurmConfig={"NodeType": "Compute"}), "PartitionNames is required for Compute"),
        (lambda s: s["InstanceGroups"][0]["SlurmConfig"].update(PartitionNames=["dev"]),
         "Partitions can only be assigned to Compute node types"),
        (lambda s: s["InstanceGroups"][0].update(InstanceCount=2), "one at most"),
        (lambda s: s.update(NodeProvisioningMode="Continuous"), "SlurmConfigStrategy cannot be specified"),
        (lambda s: s["Orchestrator"]["Slurm"].update(AccountingDatabase={
            "Endpoint": "db.example.com",
            "SecretArn": "arn:aws:secretsmanager:us-west-2:123456789012:secret:db-AbCdEf"}),
         "AccountingDatabase requires NodeProvisioningMode Continuous"),
        (lambda s: worker(s, KubernetesConfig={"Labels": {"a": "b"}}), "requires Orchestrator.Eks"),
        (lambda s: worker(s, AutoPatchConfig={"PatchingStrategy": "WhenIdle"}), "requires Orchestrator.Eks"),
        (lambda s: worker(s, InstanceStorageConfigs=[
            {"FsxLustreConfig": {"DnsName": "fs-0123456789abcdef0.fsx.amazonaws.com", "MountName": "a"}}] * 2),
         "At most one FsxLustreConfig"),
    ],
)  # fmt: skip
def test_what_cannot_work_with_slurm_is_refused(client, on_slurm, change, words):
    change(on_slurm)
    assert words in refusal(client, on_slurm)


@pytest.mark.documented("HP-52")
def test_a_lost_node_is_told_to_eventbridge(client, on_slurm, clean):
    sqs, events, sagemaker = client("sqs"), client("events"), client("sagemaker")
    url = sqs.create_queue(QueueName="health")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = {
        "source": ["aws.sagemaker"],
        "detail-type": ["SageMaker HyperPod Cluster Node Health Event"],
        "detail": {"ClusterName": ["lab"]},
    }
    events.put_rule(Name="health", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="health", Targets=[{"Id": "queue", "Arn": arn}])
    sagemaker.create_cluster(**on_slurm)
    lost = nodes(sagemaker)[1]["InstanceId"]

    sagemaker.batch_replace_cluster_nodes(ClusterName="lab", NodeIds=[lost])
    message = json.loads(sqs.receive_message(QueueUrl=url, WaitTimeSeconds=10)["Messages"][0]["Body"])

    assert message["detail"]["ClusterName"] == "lab"
    assert message["detail"]["HealthSummary"]["HealthStatus"] == "Unhealthy"
    assert lost in message["detail"]["HealthSummary"]["HealthStatusReason"]
