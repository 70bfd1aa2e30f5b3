"""The EKS control plane and its add-ons: what is there, what may do what, and what CloudFormation makes first."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from holdfast.catalog import charts
from holdfast_constructs import (
    ChartFolder,
    ContainerInsights,
    FsxCsiDriver,
    HealthAgent,
    HyperPodEks,
    InstanceQuota,
    JobOperator,
    LustreVolume,
    ObservabilityAddon,
    PriorityClass,
    TaskGovernance,
    Team,
    TrainingOperator,
)
from holdfast_constructs.helm_installer._archive import read_chart, verify

Resources = dict[str, dict[str, Any]]


class Network(Construct):
    """As much of a network as the constructs ask for."""

    def __init__(self, scope: Construct) -> None:
        super().__init__(scope, "Network")
        self.vpc = ec2.Vpc.from_vpc_attributes(
            self, "Vpc", vpc_id="vpc-1", availability_zones=["us-west-2a", "us-west-2b"], vpc_cidr_block="10.0.0.0/16"
        )
        self.subnet, second = (
            ec2.Subnet.from_subnet_attributes(
                self, f"Subnet{zone}", subnet_id=f"subnet-{zone}", availability_zone=f"us-west-2{zone}"
            )
            for zone in "ab"
        )
        self.subnets, self.control_plane_subnets = (self.subnet,), [self.subnet, second]
        self.closed = False
        self.security_group = ec2.CfnSecurityGroup(self, "Nodes", group_description="nodes", vpc_id="vpc-1")
        self.security_group = ec2.SecurityGroup.from_security_group_id(self, "Group", self.security_group.ref)
        self.security_groups = (self.security_group,)


class Cluster(Construct):
    """A HyperPod cluster that waits for what the control plane says it has to wait for."""

    def __init__(self, scope: Construct, eks: HyperPodEks) -> None:
        super().__init__(scope, "Cluster")
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
        resource = self.resource = sagemaker.CfnCluster(
            self,
            "Resource",
            orchestrator=sagemaker.CfnCluster.OrchestratorProperty(
                eks=sagemaker.CfnCluster.ClusterOrchestratorEksConfigProperty(cluster_arn=eks.cluster_arn)
            ),
        )
        resource.node.add_dependency(eks.dependencies, eks.add_nodes_role(role))
        self.nodes = resource
        eks.install_after(resource)
        self.cluster_arn = resource.attr_cluster_arn


class Lustre:
    file_system_id, dns_name, mount_name = "fs-1", "fs-1.fsx", "abc"


class Workspace:
    workspace_arn = "arn:aws:aps:us-west-2:111122223333:workspace/ws-1"


class Grafana:
    workspace_name = "demo"
    workspace_arn = "arn:aws:grafana:us-west-2:111122223333:/workspaces/g-1"


def new_stack(region: str = "us-west-2") -> cdk.Stack:
    return cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region=region))


def control_plane(stack: cdk.Stack, **changes: Any) -> HyperPodEks:
    arguments: dict[str, Any] = {"cluster_name": "demo", "network": Network(stack), "kubernetes_version": "1.33"}
    return HyperPodEks(stack, "Eks", **{**arguments, **changes})


def resources_of(stack: cdk.Stack) -> Resources:
    found: Resources = assertions.Template.from_stack(stack).to_json()["Resources"]
    return found


@pytest.fixture(scope="module")
def resources() -> Resources:
    """Everything there is, in one stack."""
    stack = new_stack()
    eks = control_plane(stack)
    cluster: Any = Cluster(stack, eks)
    ContainerInsights(stack, "Insights", eks_cluster=eks, cluster=cluster)
    TrainingOperator(stack, "Operator", eks_cluster=eks, cluster=cluster)
    TaskGovernance(
        stack,
        "Governance",
        eks_cluster=eks,
        cluster=cluster,
        name="demo",
        priority_classes=[PriorityClass(name="training", weight=80)],
        teams=[
            Team(
                name="research",
                weight=60,
                quota=[InstanceQuota(instance_type="ml.p5.48xlarge", instance_count=10)],
                borrow_limit_percent=100,
            ),
            Team(name="guests", sharing="Lend"),
        ],
    )
    LustreVolume(
        stack,
        "Volume",
        eks_cluster=eks,
        driver=FsxCsiDriver(stack, "Fsx", eks_cluster=eks, cluster=cluster),
        file_system=Lustre(),  # type: ignore[arg-type]
        capacity_gib=1200,
        namespace="team",
    )
    ObservabilityAddon(
        stack,
        "Metrics",
        eks_cluster=eks,
        cluster=cluster,
        prometheus=Workspace(),
        grafana=Grafana(),
        levels={"networkMetrics": "ADVANCED"},
    )
    eks.grant_access(
        iam.Role.from_role_arn(stack, "Team", "arn:aws:iam::111122223333:role/team"),
        policy="AmazonEKSEditPolicy",
        namespaces=["team"],
    )
    return resources_of(stack)


def test_the_control_plane_is_private_logged_and_nobodys_by_default(resources: Resources) -> None:
    properties = one(resources, "AWS::EKS::Cluster")["Properties"]

    assert properties["AccessConfig"] == {
        "AuthenticationMode": "API",
        "BootstrapClusterCreatorAdminPermissions": False,
    }
    vpc = properties["ResourcesVpcConfig"]
    assert vpc["EndpointPrivateAccess"] is True
    assert vpc["EndpointPublicAccess"] is False
    assert vpc["SubnetIds"] == ["subnet-a", "subnet-b"]
    assert len(properties["Logging"]["ClusterLogging"]["EnabledTypes"]) == 5
    assert properties["BootstrapSelfManagedAddons"] is False
    assert "EncryptionConfig" not in properties


def test_the_log_of_the_control_plane_is_there_before_eks_would_make_one_without_end(resources: Resources) -> None:
    log = next(id_ for id_, r in of_type(resources, "AWS::Logs::LogGroup") if "/aws/eks/" in str(r["Properties"]))

    assert before(resources, log, only(resources, "AWS::EKS::Cluster"))


def test_public_access_is_for_the_named_blocks_and_secrets_take_the_key() -> None:
    stack = new_stack()
    control_plane(stack, public_access_cidrs=["192.0.2.0/24"], encryption_key=kms.Key(stack, "Key"))

    resources = resources_of(stack)

    properties = one(resources, "AWS::EKS::Cluster")["Properties"]
    assert properties["ResourcesVpcConfig"]["EndpointPublicAccess"] is True
    assert properties["ResourcesVpcConfig"]["PublicAccessCidrs"] == ["192.0.2.0/24"]
    assert properties["EncryptionConfig"][0]["Resources"] == ["secrets"]
    assert all("KmsKeyId" in log["Properties"] for _, log in of_type(resources, "AWS::Logs::LogGroup"))
    assert before(resources, only(resources, "AWS::IAM::Policy"), only(resources, "AWS::EKS::Cluster"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"kubernetes_version": "1.36"},
            "kubernetes version: got '1.36'; allowed, because HyperPod accepts them: "
            "1.30, 1.31, 1.32, 1.33, 1.34, 1.35",
        ),
        (
            {"public_access_cidrs": ["0.0.0.0/0"]},
            "public access: got 0.0.0.0/0, the whole internet; allowed: the blocks you come from",
        ),
        (
            {"addon_versions": {"cilium": "v1"}},
            "add-on versions: got cilium; allowed: vpc-cni, kube-proxy, eks-pod-identity-agent, coredns; "
            "the construct of another add-on takes its version",
        ),
        (
            {"addon_versions": {"vpc-cni": "v1.18.2-eksbuild.1"}},
            "add-on vpc-cni: got version 'v1.18.2-eksbuild.1'; allowed: v1.18.3 or later",
        ),
        (
            {"instance_types": ["p5.48xlarge"]},
            "instance types: got p5.48xlarge; allowed: types of holdfast.catalog.instance_types(), "
            "with their ml. prefix",
        ),
    ],
)
def test_rejects_what_hyperpod_or_a_security_review_would(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        control_plane(new_stack(), **change)


def test_everything_hyperpod_depends_on_is_there_before_the_cluster(resources: Resources) -> None:
    cluster = only(resources, "AWS::SageMaker::Cluster")
    releases = [
        id_ for id_, r in of_type(resources, "Custom::HoldfastHelmRelease") if r["Properties"]["Release"] != "storage"
    ]
    addons = [addon(resources, name) for name in ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")]
    nodes = next(
        id_ for id_, r in of_type(resources, "AWS::EKS::AccessEntry") if r["Properties"].get("Type") == "HYPERPOD_LINUX"
    )

    assert len(releases) == 7
    assert [late for late in [*releases, *addons, nodes] if not before(resources, late, cluster)] == []


def test_core_dns_is_made_when_nodes_are_there_because_without_them_it_is_degraded(resources: Resources) -> None:
    assert before(resources, only(resources, "AWS::SageMaker::Cluster"), addon(resources, "coredns"))


def test_what_needs_nodes_is_made_after_the_cluster_and_after_its_roles(resources: Resources) -> None:
    cluster = only(resources, "AWS::SageMaker::Cluster")
    for name, service_account in (
        ("amazon-cloudwatch-observability", "cloudwatch-agent"),
        ("amazon-sagemaker-hyperpod-training-operator", "hp-training-operator-controller-manager"),
        ("amazon-sagemaker-hyperpod-observability", "hyperpod-observability-operator-otel-collector"),
        ("aws-fsx-csi-driver", "fsx-csi-controller-sa"),
    ):
        association = next(
            id_
            for id_, r in of_type(resources, "AWS::EKS::PodIdentityAssociation")
            if r["Properties"]["ServiceAccount"] == service_account
        )
        assert before(resources, cluster, addon(resources, name)), name
        assert before(resources, association, addon(resources, name)), name
        assert before(resources, addon(resources, "eks-pod-identity-agent"), addon(resources, name)), name


def test_a_file_system_is_claimed_when_its_driver_is_there(resources: Resources) -> None:
    volume = only(resources, "Custom::HoldfastHelmRelease", "storage")

    assert before(resources, addon(resources, "aws-fsx-csi-driver"), volume)
    assert resources[volume]["Properties"]["Namespace"] == "team"
    assert json.loads(resources[volume]["Properties"]["Values"])["persistentVolume"]["name"] == "lustre-team"


def test_cert_manager_comes_before_the_operator_whose_certificates_it_signs(resources: Resources) -> None:
    operator = addon(resources, "amazon-sagemaker-hyperpod-training-operator")

    assert before(resources, addon(resources, "cert-manager"), operator)
    assert resources[operator]["Properties"]["AddonVersion"] == "v1.2.1-eksbuild.1"
    assert "PodIdentityAssociations" not in resources[operator]["Properties"]


def test_the_scheduler_is_configured_when_task_governance_is_there(resources: Resources) -> None:
    config = only(resources, "AWS::SageMaker::ClusterSchedulerConfig")

    assert before(resources, addon(resources, "amazon-sagemaker-hyperpod-taskgovernance"), config)
    assert resources[config]["Properties"]["SchedulerConfig"] == {
        "FairShare": "Enabled",
        "PriorityClasses": [{"Name": "training", "Weight": 80}],
    }


def test_rejects_priority_classes_that_the_api_would() -> None:
    with pytest.raises(ValueError, match="weight 101; allowed: 0 to 100"):
        PriorityClass(name="a", weight=101)
    stack = new_stack()
    eks: Any = Workspace()
    with pytest.raises(ValueError, match="priority classes: got a, a; allowed: at most 10, with unique names"):
        TaskGovernance(
            stack, "G", eks_cluster=eks, cluster=eks, name="g", priority_classes=[PriorityClass(name="a", weight=1)] * 2
        )


def test_a_release_says_exactly_which_files_it_installs(resources: Resources) -> None:
    releases = {
        r["Properties"]["Release"]: r["Properties"] for _, r in of_type(resources, "Custom::HoldfastHelmRelease")
    }

    agent = releases["health-monitoring-agent"]
    chart = charts()["health-monitoring-agent"]
    assert agent["TreeSha256"] == chart.tree_sha256
    assert agent["Archive"]["Url"] == f"https://codeload.github.com/aws/sagemaker-hyperpod-cli/tar.gz/{chart.commit}"
    assert agent["Wait"] == "false"
    assert json.loads(agent["Values"]) == {"region": "us-west-2", "debug": False}
    assert set(releases) == set(charts())


def test_charts_that_put_objects_into_a_namespace_come_after_the_one_that_makes_it(resources: Resources) -> None:
    releases = {r["Properties"]["Release"]: id_ for id_, r in of_type(resources, "Custom::HoldfastHelmRelease")}

    assert before(resources, releases["deep-health-check"], releases["health-monitoring-agent"])
    assert before(resources, releases["deep-health-check"], releases["job-auto-restart"])


def test_a_release_is_made_when_its_installer_may_in_and_undone_before_it_may_not(resources: Resources) -> None:
    release = only(resources, "Custom::HoldfastHelmRelease", "deep-health-check")
    admin = next(
        id_
        for id_, r in of_type(resources, "AWS::EKS::AccessEntry")
        if "AmazonEKSClusterAdminPolicy" in str(r["Properties"])
    )

    assert before(resources, admin, release)
    assert before(resources, only(resources, "AWS::EC2::SecurityGroup"), release)
    assert one(resources, "AWS::Lambda::Function")["Properties"]["VpcConfig"]["SubnetIds"] == ["subnet-a"]


def test_a_cluster_of_cpus_gets_no_device_plugin() -> None:
    stack = new_stack()
    control_plane(stack, instance_types=["ml.m5.xlarge"])

    assert _released(stack) == {"deep-health-check", "health-monitoring-agent", "hyperpod-patching", "job-auto-restart"}


def test_in_a_closed_network_archives_come_from_s3(tmp_path: Any) -> None:
    archive = tmp_path / "cli.tar.gz"
    archive.write_bytes(b"archive")
    stack = new_stack()
    control_plane(stack, instance_types=["ml.m5.xlarge"], chart_archives={"aws/sagemaker-hyperpod-cli": archive})

    resources = resources_of(stack)

    assert "codeload" not in json.dumps(resources)
    release = resources[only(resources, "Custom::HoldfastHelmRelease", "deep-health-check")]
    assert set(release["Properties"]["Archive"]) == {"Bucket", "Key"}
    (statement,) = one(resources, "AWS::IAM::Policy")["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Action"] == "s3:GetObject"
    assert release["Properties"]["Archive"]["Key"] in json.dumps(statement["Resource"])
    assert before(resources, only(resources, "AWS::IAM::Policy"), only(resources, "AWS::Lambda::Function"))


def test_a_chart_of_a_folder_is_installed_from_an_asset_and_is_what_its_digest_says(repository: Path) -> None:
    chart = repository / "containers/health-agent/chart"
    stack = new_stack()
    cluster = control_plane(stack, instance_types=["ml.m5.xlarge"])
    HealthAgent(stack, "Agent", eks_cluster=cluster, chart=chart, image="agent@sha256:0", cluster_name="demo")
    resources = resources_of(stack)
    release = resources[only(resources, "Custom::HoldfastHelmRelease", "holdfast-health-agent")]["Properties"]
    assert release["Namespace"] == "holdfast-system"
    assert json.loads(release["Values"])["ownNodeOnly"] is True
    assert json.loads(release["Values"])["image"] == "agent@sha256:0"
    assert release["Archive"]["Key"] in json.dumps(one(resources, "AWS::IAM::Policy")["Properties"]["PolicyDocument"])

    packed = ChartFolder(name="holdfast-health-agent", folder=chart)
    files = read_chart(io.BytesIO(packed.archive()), release["ChartPath"])
    verify(files, path=release["ChartPath"], expected_sha256=release["TreeSha256"])
    assert packed.archive() == ChartFolder(name=packed.name, folder=chart).archive()


def test_the_operator_of_jobs_is_a_release_of_its_chart(repository: Path) -> None:
    stack = new_stack()
    cluster = control_plane(stack, instance_types=["ml.m5.xlarge"])
    chart = repository / "containers/operator/chart"
    JobOperator(
        stack, "Jobs", eks_cluster=cluster, chart=chart, image="operator@sha256:0", node_selector={"role": "cpu"}
    )
    resources = resources_of(stack)
    release = resources[only(resources, "Custom::HoldfastHelmRelease", "holdfast-operator")]["Properties"]
    assert release["Namespace"] == "holdfast-system"
    assert json.loads(release["Values"]) == {
        "image": "operator@sha256:0",
        "admission": {"enabled": True},
        "nodeSelector": {"role": "cpu"},
    }


def test_a_folder_without_a_chart_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"allowed: one with a Chart\.yaml"):
        ChartFolder(name="none", folder=tmp_path).archive()


def test_an_imported_cluster_takes_nodes_and_people_by_its_name_alone() -> None:
    stack = new_stack()
    imported = HyperPodEks.from_cluster_name(stack, "Eks", cluster_name="theirs")
    imported.add_nodes_role(iam.Role.from_role_arn(stack, "Nodes", "arn:aws:iam::111122223333:role/nodes"))

    entry = one(resources_of(stack), "AWS::EKS::AccessEntry")

    assert entry["Properties"] == {
        "ClusterName": "theirs",
        "PrincipalArn": "arn:aws:iam::111122223333:role/nodes",
        "Type": "HYPERPOD_LINUX",
    }


def test_nodes_get_no_access_policy_and_people_get_theirs(resources: Resources) -> None:
    entries = [r["Properties"] for _, r in of_type(resources, "AWS::EKS::AccessEntry")]

    assert [entry for entry in entries if entry.get("Type") and "AccessPolicies" in entry] == []
    team = next(entry for entry in entries if entry["PrincipalArn"] == "arn:aws:iam::111122223333:role/team")
    assert team["AccessPolicies"][0]["AccessScope"] == {"Namespaces": ["team"], "Type": "namespace"}
    assert "cluster-access-policy/AmazonEKSEditPolicy" in json.dumps(team["AccessPolicies"][0]["PolicyArn"])


def test_a_role_of_pods_is_for_one_service_account_of_one_cluster(resources: Resources) -> None:
    trusts = [
        statement
        for _, role in of_type(resources, "AWS::IAM::Role")
        for statement in role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        if statement["Principal"].get("Service") == "pods.eks.amazonaws.com"
    ]

    actions = {action for statement in trusts for action in flat(statement["Action"])}
    assert actions == {"sts:AssumeRole", "sts:TagSession"}
    for statement in trusts:
        assert set(statement["Condition"]["StringEquals"]) == {
            "aws:SourceAccount",
            "aws:RequestTag/kubernetes-namespace",
            "aws:RequestTag/kubernetes-service-account",
        }
        assert "aws:SourceArn" in statement["Condition"]["ArnEquals"]


def test_no_policy_has_a_star_for_an_action_and_few_for_a_resource(resources: Resources) -> None:
    assert of_type(resources, "AWS::IAM::Policy") == []
    wide = {
        action
        for _, role in of_type(resources, "AWS::IAM::Role")
        for policy in role["Properties"].get("Policies", ())
        for statement in policy["PolicyDocument"]["Statement"]
        for action in flat(statement["Action"])
        if statement["Resource"] == "*" or "*" in action
    }

    assert wide == {
        "cloudwatch:PutMetricData",
        "ec2:DescribeTags",
        "ec2:DescribeVolumes",
        "fsx:DescribeFileSystems",
        "logs:DescribeLogGroups",
        "logs:StopQuery",
    }


def test_add_ons_are_told_what_to_measure_and_where_to_send_it(resources: Resources) -> None:
    insights = json.loads(
        resources[addon(resources, "amazon-cloudwatch-observability")]["Properties"]["ConfigurationValues"]
    )
    metrics = json.dumps(resources[addon(resources, "amazon-sagemaker-hyperpod-observability")]["Properties"])

    kubernetes = insights["agent"]["config"]["logs"]["metrics_collected"]["kubernetes"]
    assert kubernetes == {"enhanced_container_insights": True, "accelerated_compute_metrics": True}
    assert "https://aps-workspaces.us-west-2." in metrics
    assert "/workspaces/ws-1" in metrics
    assert "networkMetrics" in metrics
    logs = [r["Properties"] for _, r in of_type(resources, "AWS::Logs::LogGroup")]
    assert all(log["RetentionInDays"] for log in logs)


def test_warns_where_the_health_monitoring_agent_has_no_image() -> None:
    stack = new_stack("eu-west-3")
    control_plane(stack, instance_types=["ml.m5.xlarge"])

    agent = "the health monitoring agent has no image in eu-west-3"
    warnings = assertions.Annotations.from_stack(stack)
    warnings.has_warning("/Demo/Eks/Charts", assertions.Match.string_like_regexp(agent))


# Walking the template: what CloudFormation makes before what.


def before(resources: Resources, first: str, then: str) -> bool:
    """Whether CloudFormation makes ``first`` before ``then``, because ``then`` needs it, however indirectly."""
    seen: set[str] = set()
    waiting = [then]
    while waiting:
        for needed in set(needs(resources[waiting.pop()])) - seen:
            if needed in resources:
                seen.add(needed)
                waiting.append(needed)
    return first in seen


def needs(value: Any) -> Iterator[str]:
    """The logical ids that a part of a template names, in whatever way."""
    if isinstance(value, dict):
        for key, below in value.items():
            if key in ("Ref", "DependsOn"):
                yield from flat(below)
            elif key == "Fn::GetAtt":
                yield flat(below)[0].split(".")[0]
            else:
                yield from needs(below)
    elif isinstance(value, list):
        for below in value:
            yield from needs(below)


def flat(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def of_type(resources: Resources, type_: str) -> list[tuple[str, dict[str, Any]]]:
    return [(id_, resource) for id_, resource in resources.items() if resource["Type"] == type_]


def only(resources: Resources, type_: str, release: str | None = None) -> str:
    found = [
        id_ for id_, r in of_type(resources, type_) if release is None or r["Properties"].get("Release") == release
    ]
    assert len(found) == 1, found
    return found[0]


def one(resources: Resources, type_: str) -> dict[str, Any]:
    return resources[only(resources, type_)]


def addon(resources: Resources, name: str) -> str:
    return next(id_ for id_, r in of_type(resources, "AWS::EKS::Addon") if r["Properties"]["AddonName"] == name)


def _released(stack: cdk.Stack) -> set[str]:
    return {r["Properties"]["Release"] for _, r in of_type(resources_of(stack), "Custom::HoldfastHelmRelease")}


def test_teams_have_their_quotas_once_the_policy_is_there(resources: Resources) -> None:
    quotas = {r["Properties"]["Name"]: (id_, r) for id_, r in of_type(resources, "AWS::SageMaker::ComputeQuota")}
    policy = only(resources, "AWS::SageMaker::ClusterSchedulerConfig")
    name, research = quotas["research"]

    assert research["Properties"] == {
        "Name": "research",
        "ClusterArn": {"Fn::GetAtt": [only(resources, "AWS::SageMaker::Cluster"), "ClusterArn"]},
        "ComputeQuotaTarget": {"TeamName": "research", "FairShareWeight": 60},
        "ComputeQuotaConfig": {
            "ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "Count": 10}],
            "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100},
            "PreemptTeamTasks": "LowerPriority",
        },
    }
    assert quotas["guests"][1]["Properties"]["ComputeQuotaConfig"]["ResourceSharingConfig"] == {"Strategy": "Lend"}
    assert before(resources, policy, name)


def test_quotas_do_without_a_policy_where_a_region_has_none() -> None:
    stack = new_stack()
    eks = control_plane(stack)
    cluster: Any = Cluster(stack, eks)
    TaskGovernance(
        stack, "Governance", eks_cluster=eks, cluster=cluster, name="demo", policy=False, teams=[Team(name="research")]
    )
    resources = resources_of(stack)

    assert of_type(resources, "AWS::SageMaker::ClusterSchedulerConfig") == []
    (quota,) = (name for name, _ in of_type(resources, "AWS::SageMaker::ComputeQuota"))
    assert before(resources, addon(resources, "amazon-sagemaker-hyperpod-taskgovernance"), quota)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"teams": [Team(name="a"), Team(name="a")]}, "teams: got a, a; allowed: unique names"),
        (
            {"policy": False, "priority_classes": [PriorityClass(name="x", weight=1)]},
            "no policy; allowed: with a policy",
        ),
    ],
)
def test_task_governance_that_contradicts_itself_is_refused(settings: dict[str, Any], words: str) -> None:
    stack = new_stack()
    eks = control_plane(stack)
    cluster: Any = Cluster(stack, eks)
    with pytest.raises(ValueError, match=words):
        TaskGovernance(stack, "Governance", eks_cluster=eks, cluster=cluster, name="demo", **settings)


def test_a_team_that_borrows_nothing_has_no_limit_to_it() -> None:
    with pytest.raises(ValueError, match="allowed: LendAndBorrow"):
        Team(name="a", sharing="DontLend", borrow_limit_percent=10)


def test_a_control_plane_that_stays_keeps_its_role_and_what_the_role_may() -> None:
    stack = new_stack()
    control_plane(stack, encryption_key=kms.Key(stack, "Key"), removal_policy=cdk.RemovalPolicy.RETAIN)
    parts = {name: item for name, item in resources_of(stack).items() if name.startswith(("EksRole", "Eks3DB0AF90"))}

    assert {item["Type"] for item in parts.values()} == {"AWS::EKS::Cluster", "AWS::IAM::Role", "AWS::IAM::Policy"}
    assert {item["DeletionPolicy"] for item in parts.values()} == {"Retain"}
