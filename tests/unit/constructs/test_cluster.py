"""The constructs together: what a cluster needs is there, and there before the cluster."""

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secretsmanager

from holdfast_constructs import (
    AccountingDatabase,
    AutoScaling,
    DataBucket,
    DataRepositoryAssociation,
    EbsVolume,
    EksOrchestrator,
    EventLogGroup,
    HyperPodCluster,
    HyperPodNetwork,
    IHyperPodCluster,
    InstanceGroup,
    LifecycleBundle,
    LustreFileSystem,
    LustreMount,
    SlurmOrchestrator,
    Taint,
)
from holdfast_constructs.cluster import check_groups as check
from holdfast_constructs.cluster import orchestrator_properties
from holdfast_constructs.eks import EksBase

GROUPS = [
    InstanceGroup(name="controller", instance_type="ml.m5.xlarge", instance_count=1, node_type="Controller"),
    InstanceGroup(
        name="workers",
        instance_type="ml.p5.48xlarge",
        instance_count=5,
        node_type="Compute",
        partition="dev",
        volumes=[EbsVolume(size_gib=500)],
    ),
]
ON_EKS = [InstanceGroup(name="workers", instance_type="ml.p5.48xlarge", instance_count=5)]
ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"


KEPT = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE


def make(stack: cdk.Stack, scripts: Path, *, policy: cdk.RemovalPolicy = KEPT) -> HyperPodCluster:
    network = HyperPodNetwork(
        stack,
        "Network",
        cidr="10.1.0.0/16",
        availability_zone="us-west-2a",
        removal_policy=policy,
    )
    data = DataBucket(stack, "Data", removal_policy=policy)
    lustre = LustreFileSystem(
        stack,
        "Lustre",
        subnet=network.subnet,
        security_group=network.security_group,
        storage_capacity_gib=1200,
        per_unit_storage_throughput=250,
        data_repository_associations=[
            DataRepositoryAssociation(
                name="a", bucket=data.bucket, prefix="a", file_system_path="/a", auto_import=["NEW"]
            ),
            DataRepositoryAssociation(
                name="b", bucket=data.bucket, prefix="b", file_system_path="/b", auto_export=["CHANGED"]
            ),
        ],
        removal_policy=policy,
    )
    EventLogGroup(stack, "Events", cluster_name="demo", removal_policy=policy)
    bundle = LifecycleBundle(stack, "Lifecycle", name="demo", sources=[scripts], config={})
    return HyperPodCluster(
        stack,
        "Cluster",
        cluster_name="demo",
        network=network,
        orchestrator=SlurmOrchestrator(),
        instance_groups=GROUPS,
        lifecycle=bundle,
        lustre=LustreMount(file_system=lustre),
        tags={"team": "training"},
    )


def new_stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scripts") / "on_init_complete.sh"
    path.write_text("#!/bin/bash\n")
    path.with_name("on_create.sh").write_text("#!/bin/bash\n")
    return path


@pytest.fixture(scope="module")
def template(scripts: Path) -> assertions.Template:
    stack = new_stack()
    make(stack, scripts)
    return assertions.Template.from_stack(stack)


@pytest.fixture(scope="module")
def resources(template: assertions.Template) -> dict[str, Any]:
    found: dict[str, Any] = template.to_json()["Resources"]
    return found


def of_type(resources: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: resource for name, resource in resources.items() if resource["Type"] == kind}


def test_instance_groups_carry_slurm_storage_and_lifecycle(resources: dict[str, Any]) -> None:
    (cluster,) = of_type(resources, "AWS::SageMaker::Cluster").values()
    controller, workers = cluster["Properties"]["InstanceGroups"]

    assert cluster["Properties"]["Orchestrator"] == {"Slurm": {"SlurmConfigStrategy": "Managed"}}
    assert cluster["Properties"]["NodeRecovery"] == "Automatic"
    assert cluster["Properties"]["Tags"] == [{"Key": "team", "Value": "training"}]
    assert controller["SlurmConfig"] == {"NodeType": "Controller"}
    assert workers["SlurmConfig"] == {"NodeType": "Compute", "PartitionNames": ["dev"]}
    assert workers["InstanceCount"] == 5
    assert workers["LifeCycleConfig"]["OnInitComplete"] == "on_init_complete.sh"
    assert "OnCreate" not in workers["LifeCycleConfig"]
    assert [next(iter(config)) for config in workers["InstanceStorageConfigs"]] == [
        "EbsVolumeConfig",
        "FsxLustreConfig",
    ]
    assert [next(iter(config)) for config in controller["InstanceStorageConfigs"]] == ["FsxLustreConfig"]


def test_the_cluster_waits_for_all_that_nodes_need_at_boot(resources: dict[str, Any]) -> None:
    (cluster,) = of_type(resources, "AWS::SageMaker::Cluster").values()
    needed = {
        "Custom::CDKBucketDeployment",
        "AWS::FSx::DataRepositoryAssociation",
        "AWS::EC2::VPCEndpoint",
        "AWS::EC2::Route",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::IAM::Policy",
    }

    assert needed <= {resources[name]["Type"] for name in cluster["DependsOn"]}


def test_a_changed_script_changes_the_place_of_the_lifecycle_scripts(scripts: Path, tmp_path: Path) -> None:
    other = tmp_path / "on_init_complete.sh"
    other.write_text("#!/bin/bash\ntrue\n")
    stack, changed = new_stack(), new_stack()
    make(stack, scripts)
    make(changed, other)

    uris = [json.dumps(source_uris(assertions.Template.from_stack(item))) for item in (stack, changed)]
    assert uris[0] != uris[1]


def source_uris(template: assertions.Template) -> list[Any]:
    (cluster,) = template.find_resources("AWS::SageMaker::Cluster").values()
    return [group["LifeCycleConfig"]["SourceS3Uri"] for group in cluster["Properties"]["InstanceGroups"]]


def test_what_holds_data_and_what_it_stands_on_outlives_the_stack_but_not_a_creation_that_fails(
    resources: dict[str, Any],
) -> None:
    kept = [resource for resource in resources.values() if resource.get("DeletionPolicy") == "RetainExceptOnCreate"]
    retained = {resource["Type"] for resource in kept}

    assert {resource["UpdateReplacePolicy"] for resource in kept} == {"Retain"}
    assert [resource for resource in resources.values() if resource.get("DeletionPolicy") == "Retain"] == []

    assert retained == {
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::Subnet",
        "AWS::EC2::VPC",
        "AWS::FSx::FileSystem",
        "AWS::Logs::LogGroup",
        "AWS::S3::Bucket",
    }


def test_nothing_is_retained_when_all_shall_go(scripts: Path) -> None:
    stack = new_stack()
    make(stack, scripts, policy=cdk.RemovalPolicy.DESTROY)
    template = assertions.Template.from_stack(stack)

    resources = template.to_json()["Resources"].items()
    kept = [name for name, item in resources if item.get("DeletionPolicy", "Delete").startswith("Retain")]
    assert kept == []
    template.resource_count_is("Custom::S3AutoDeleteObjects", 2)


def test_every_bucket_is_encrypted_private_and_takes_tls_only(template: assertions.Template) -> None:
    buckets = template.find_resources("AWS::S3::Bucket")
    policies = template.find_resources("AWS::S3::BucketPolicy")

    assert len(buckets) == len(policies) == 2
    for bucket in buckets.values():
        assert bucket["Properties"]["BucketEncryption"]
        assert set(bucket["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}
    for policy in policies.values():
        statements = policy["Properties"]["PolicyDocument"]["Statement"]
        assert {"Bool": {"aws:SecureTransport": "false"}} in [item.get("Condition") for item in statements]


def test_the_role_is_trusted_by_sagemaker_and_may_no_more_than_named(resources: dict[str, Any]) -> None:
    (role,) = (item for name, item in of_type(resources, "AWS::IAM::Role").items() if name.startswith("ClusterRole"))
    (policy,) = (
        item for name, item in of_type(resources, "AWS::IAM::Policy").items() if name.startswith("ClusterRole")
    )
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    actions = {action for item in statements for action in as_list(item["Action"])}
    anywhere = {action for item in statements if item["Resource"] == "*" for action in as_list(item["Action"])}

    assert role["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] == {
        "Service": "sagemaker.amazonaws.com"
    }
    assert "AmazonSageMakerClusterInstanceRolePolicy" in json.dumps(role["Properties"]["ManagedPolicyArns"])
    assert {"ec2:CreateNetworkInterface", "ec2:DescribeSubnets", "s3:GetObject*"} <= actions
    assert not {action for action in actions if action.startswith(("fsx:", "ecr:", "eks-auth:", "kms:", "cloudwatch:"))}
    assert not {action for action in actions if action.endswith(":*") or action == "*"}
    assert all(":Describe" in action for action in anywhere)


def test_the_agent_of_each_node_ships_events_and_that_of_the_controller_watches_nodes(
    scripts: Path, template: assertions.Template
) -> None:
    stack = new_stack()
    cluster = make(stack, scripts)
    cluster.allow_health_agent(events=EventLogGroup(stack, "MoreEvents", cluster_name="more").log_group)
    allowed = assertions.Template.from_stack(stack).to_json()
    before = statements_of(template.to_json(), "ClusterRoleDefaultPolicy").values()
    now = statements_of(allowed, "ClusterRoleDefaultPolicy")
    more = {sid: each for sid, each in now.items() if each not in before}
    assert {sid: each["Action"] for sid, each in more.items()} == {
        "MakeStreams": ["logs:CreateLogStream", "logs:GetLogEvents"],
        "ShipEvents": "logs:PutLogEvents",
    }
    assert ":log-stream:i-*" in json.dumps(more["ShipEvents"]["Resource"])
    watching = statements_of(allowed, "ClusterHealthAgent")
    assert {sid: each["Action"] for sid, each in watching.items()} == {
        "WatchNodes": "sagemaker:ListClusterNodes",
        "ReadHealthRecords": "logs:FilterLogEvents",
    }
    assert watching["WatchNodes"]["Resource"] == stack.resolve(cluster.cluster_arn)
    assert '"*"' not in json.dumps([*more.values(), *watching.values()])
    assert "log-group:/aws/sagemaker/Clusters/demo/" in json.dumps(watching["ReadHealthRecords"]["Resource"])


def test_where_pods_run_the_agent_it_reads_nothing_of_the_cluster(scripts: Path) -> None:
    stack = new_stack()
    network = HyperPodNetwork(stack, "Network", cidr="10.1.0.0/16", availability_zone="us-west-2a", orchestrator="eks")
    bundle = LifecycleBundle(stack, "Lifecycle", name="demo", sources=[scripts.with_name("on_create.sh")], config={})
    cluster = HyperPodCluster(
        stack,
        "Cluster",
        cluster_name="demo",
        network=network,
        orchestrator=EksOrchestrator(control_plane=EksBase(stack, "Eks", cluster_name="demo-eks")),
        instance_groups=ON_EKS,
        lifecycle=bundle,
    )
    cluster.allow_health_agent(events=EventLogGroup(stack, "Events", cluster_name="demo").log_group)
    text = json.dumps(assertions.Template.from_stack(stack).to_json())
    assert "ShipEvents" in text
    assert "WatchNodes" not in text


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.fixture(scope="module")
def eks(scripts: Path) -> dict[str, Any]:
    stack = new_stack()
    network = HyperPodNetwork(stack, "Network", cidr="10.1.0.0/16", availability_zone="us-west-2a", orchestrator="eks")
    control_plane = EksBase(stack, "Eks", cluster_name="demo-eks")
    cluster = HyperPodCluster(
        stack,
        "Cluster",
        cluster_name="demo",
        network=network,
        orchestrator=EksOrchestrator(control_plane=control_plane),
        instance_groups=ON_EKS,
        lifecycle=LifecycleBundle(
            stack, "Lifecycle", name="demo", sources=[scripts.with_name("on_create.sh")], config={}
        ),
        continuous_provisioning=True,
        auto_scaling=AutoScaling(),
    )
    DataBucket(stack, "Data").bucket.grant_read(cluster)
    return dict(assertions.Template.from_stack(stack).to_json())


def statements_of(template: dict[str, Any], start: str) -> dict[str, Any]:
    policies = of_type(template["Resources"], "AWS::IAM::Policy")
    (policy,) = (item["Properties"] for name, item in policies.items() if name.startswith(start))
    return {item.get("Sid", str(index)): item for index, item in enumerate(policy["PolicyDocument"]["Statement"])}


def test_a_cluster_on_eks_waits_until_its_nodes_may_join(eks: dict[str, Any]) -> None:
    (cluster,) = of_type(eks["Resources"], "AWS::SageMaker::Cluster").values()
    waited_for = {eks["Resources"][other]["Type"] for other in cluster["DependsOn"]}

    assert "ClusterArn" in cluster["Properties"]["Orchestrator"]["Eks"]
    assert "AWS::EKS::AccessEntry" in waited_for
    assert cluster["Properties"]["NodeProvisioningMode"] == "Continuous"


def test_nodes_on_eks_may_what_pods_need_and_no_more(eks: dict[str, Any]) -> None:
    statements = statements_of(eks, "ClusterRoleDefaultPolicy")
    anywhere = {sid for sid, item in statements.items() if item["Resource"] == "*"}

    assert anywhere == {"LookAtTheNetwork", "LookAtNodesForPods", "LogInToRegistries"}
    assert statements["GiveRolesToPods"]["Action"] == "eks-auth:AssumeRoleForPodIdentity"
    assert "cluster/demo-eks" in json.dumps(statements["GiveRolesToPods"]["Resource"])
    assert "Condition" not in statements["PullImages"], "a pod may have an image of the team's own"


def test_what_is_granted_to_the_cluster_is_granted_to_its_nodes(eks: dict[str, Any]) -> None:
    granted = json.dumps(statements_of(eks, "ClusterRoleDefaultPolicy"))

    assert '"Fn::GetAtt": ["Data2D4B752F", "Arn"]' in granted


def test_karpenter_may_change_the_nodes_of_this_cluster_alone(eks: dict[str, Any]) -> None:
    (cluster,) = of_type(eks["Resources"], "AWS::SageMaker::Cluster").items()
    (role,) = (name for name in of_type(eks["Resources"], "AWS::IAM::Role") if name.startswith("ClusterAutoScaling"))
    (statement,) = statements_of(eks, "ClusterAutoScalingRolePolicy").values()
    (trust,) = eks["Resources"][role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]

    assert cluster[1]["Properties"]["AutoScaling"] == {"AutoScalerType": "Karpenter", "Mode": "Enable"}
    assert cluster[1]["Properties"]["ClusterRole"] == {"Fn::GetAtt": [role, "Arn"]}
    assert trust["Principal"] == {"Service": "hyperpod.sagemaker.amazonaws.com"}
    assert statement["Action"] == ["sagemaker:BatchAddClusterNodes", "sagemaker:BatchDeleteClusterNodes"]
    assert statement["Resource"] == {"Fn::GetAtt": [cluster[0], "ClusterArn"]}


def imported(stack: cdk.Stack) -> IHyperPodCluster:
    nodes = ec2.SecurityGroup.from_security_group_id(stack, "Nodes", "sg-0123456789abcdef0")
    return HyperPodCluster.from_cluster_attributes(
        stack, "Imported", cluster_name="demo", cluster_arn=ARN, security_groups=[nodes], eks_cluster_name="demo-eks"
    )


def test_grants_name_the_cluster_also_when_it_is_imported() -> None:
    stack = new_stack()
    cluster = HyperPodCluster.from_cluster_arn(stack, "Imported", cluster_arn=ARN)
    role = iam.Role(stack, "Operator", assumed_by=iam.AccountRootPrincipal())
    cluster.grant_manage_nodes(role)
    cluster.grant_read(role)
    cluster.grant_update_software(role)

    (policy,) = assertions.Template.from_stack(stack).find_resources("AWS::IAM::Policy").values()
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    assert {item["Resource"] for item in statements} == {ARN}
    assert "sagemaker:BatchReplaceClusterNodes" in statements[0]["Action"]
    assert "sagemaker:ListClusterNodes" in statements[1]["Action"]
    assert statements[2]["Action"] == "sagemaker:UpdateClusterSoftware"


def test_an_imported_cluster_has_metrics_and_connections() -> None:
    stack = new_stack()
    cluster = imported(stack)
    metric = cluster.metric_node_health("unschedulable_pending_reboot")
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-west-2a"])
    ec2.SecurityGroup(stack, "Mine", vpc=vpc).connections.allow_from(cluster, ec2.Port.tcp(22))

    assert (metric.namespace, metric.metric_name) == (
        "ContainerInsights",
        "hyperpod_node_health_status_unschedulable_pending_reboot",
    )
    assert metric.dimensions == {"ClusterName": "demo-eks"}
    ingress = assertions.Template.from_stack(stack).find_resources("AWS::EC2::SecurityGroupIngress")
    assert [item["Properties"]["SourceSecurityGroupId"] for item in ingress.values()] == ["sg-0123456789abcdef0"]


def test_what_is_not_known_of_an_imported_cluster_is_said() -> None:
    cluster = HyperPodCluster.from_cluster_arn(new_stack(), "Imported", cluster_arn=ARN)

    with pytest.raises(ValueError, match="got its ARN alone, which has no name; use from_cluster_attributes"):
        _ = cluster.cluster_name
    with pytest.raises(ValueError, match="got no EKS cluster; allowed: metrics of a cluster on EKS"):
        cluster.metric_node_health("schedulable")


def test_a_closed_network_leads_to_what_the_cluster_has_a_use_for(scripts: Path) -> None:
    stack = new_stack()
    network = HyperPodNetwork(stack, "Network", cidr="10.1.0.0/16", availability_zone="us-west-2a", egress="none")
    lustre = LustreFileSystem(
        stack,
        "Lustre",
        subnet=network.subnet,
        security_group=network.security_group,
        storage_capacity_gib=4800,
        per_unit_storage_throughput=1000,
        efa=True,
    )
    secret = secretsmanager.Secret(stack, "Secret")
    HyperPodCluster(
        stack,
        "Cluster",
        cluster_name="demo",
        network=network,
        orchestrator=SlurmOrchestrator(
            accounting_database=AccountingDatabase(endpoint="db.example.com", secret=secret)
        ),
        instance_groups=GROUPS,
        lifecycle=LifecycleBundle(
            stack, "Lifecycle", name="demo", sources=[scripts.with_name("on_create.sh")], config={}
        ),
        lustre=LustreMount(file_system=lustre),
        continuous_provisioning=True,
    )
    resources = assertions.Template.from_stack(stack).to_json()["Resources"]
    endpoints = of_type(resources, "AWS::EC2::VPCEndpoint")
    (cluster,) = of_type(resources, "AWS::SageMaker::Cluster").values()

    services = {str(item["Properties"]["ServiceName"]) for item in endpoints.values()}
    assert {"com.amazonaws.us-west-2.fsx", "com.amazonaws.us-west-2.secretsmanager"} <= services
    assert set(endpoints) <= set(cluster["DependsOn"])


@pytest.mark.parametrize(("continuous", "strategy"), [(False, {"SlurmConfigStrategy": "Merge"}), (True, {})])
def test_slurms_strategy_is_always_said_and_never_with_continuous_provisioning(
    continuous: bool, strategy: dict[str, str]
) -> None:
    orchestrator = orchestrator_properties(SlurmOrchestrator(config_strategy="Merge"), continuous=continuous)

    assert orchestrator == {"slurm": {"Slurm": strategy}}


def test_the_underlying_resource_can_be_overridden(scripts: Path) -> None:
    stack = new_stack()
    resource = make(stack, scripts).node.default_child
    assert isinstance(resource, cdk.CfnResource)
    resource.add_property_override("NodeRecovery", "None")

    assertions.Template.from_stack(stack).has_resource_properties("AWS::SageMaker::Cluster", {"NodeRecovery": "None"})


@pytest.mark.parametrize(
    ("group", "on_eks", "message"),
    [
        ({"node_type": "Login"}, True, "got node_type 'Login' and partition None on EKS; allowed: neither"),
        ({"labels": {"a": "b"}, "node_type": "Login"}, False, "got labels or taints with Slurm; allowed: neither"),
        ({"taints": [Taint(key="a", effect="NoExecute")], "node_type": "Login"}, False, "got labels or taints with"),
        ({}, False, "got no node_type; allowed with Slurm: Controller, Login or Compute"),
    ],
)
def test_rejects_what_belongs_to_the_other_orchestrator(group: Any, on_eks: bool, message: str) -> None:
    groups = [InstanceGroup(name="x", instance_type="ml.m5.xlarge", instance_count=1, **group)]

    with pytest.raises(ValueError, match=f"instance group 'x': {message}"):
        check(groups, [], on_eks=on_eks)


def test_rejects_a_file_system_on_nodes_of_eks() -> None:
    file_system = LustreFileSystem.from_attributes(
        new_stack(), "Lustre", file_system_id="fs-0", dns_name="fs-0.fsx", mount_name="abc"
    )
    with pytest.raises(ValueError, match="got file systems at /fsx; allowed: none, pods mount them through the FSx"):
        check(ON_EKS, [LustreMount(file_system=file_system)], on_eks=True)
