"""Deployments in templates: the cases of tests/cases/templates, and how resources are put together."""

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.validation import Deployment, Finding, UnresolvedError, judge
from holdfast.validation.cloudformation import Template
from holdfast.validation.from_template import deployments_in_app

CASES = Path(__file__).parents[2] / "cases" / "templates"
SCRIPTS = {"a" * 64: {"on_create.sh": "#!/bin/bash\ntrue\n"}}
SCRIPTS["b" * 64] = SCRIPTS["a" * 64] | {"provisioning_parameters.json": "{}"}

EXPECTED: dict[str, dict[str, str]] = {
    "eight-defects": {
        "HF104": "Cluster.Properties.InstanceGroups.3.InstanceGroupName",
        "HF107": "Cluster.Properties.InstanceGroups.2.InstanceType",
        "HF110": "Cluster.Properties.InstanceGroups.1.MinInstanceCount",
        "HF403": "Cluster.Properties.InstanceGroups.3.SlurmConfig.NodeType",
        "HF406": "Cluster.Properties.InstanceGroups.2.SlurmConfig.PartitionNames",
        "HF407": "Cluster.Properties.InstanceGroups.3.SlurmConfig.PartitionNames",
        "HF412": "Cluster.Properties.Orchestrator.Slurm.SlurmConfigStrategy",
        "HF502": "Cluster.Properties.InstanceGroups.1.LifeCycleConfig.SourceS3Uri",
    },
    "real-deploy": {
        "HF205": "NodesGroup.Properties.SecurityGroupEgress",
        "HF403": "Cluster.Properties.InstanceGroups",
        "HF416": "Cluster.Properties.InstanceGroups.0.LifeCycleConfig.SourceS3Uri",
        "HF512": "Role.Properties.Policies",
    },
    "eks-defects": {
        "HF301": "Kubernetes.Properties.AccessConfig.AuthenticationMode",
        "HF302": "Kubernetes.Properties.Version",
        "HF303": "Cni.Properties.AddonVersion",
        "HF305": "ChartHealthMonitoringAgent.Properties",
        "HF306": "Nodes.Properties.Type",
        "HF309": "Cluster.Properties.InstanceGroups.0.KubernetesConfig.Taints",
    },
    "storage-defects": {
        "HF203": "NodesSubnet.Properties",
        "HF211": "Cluster.Properties.VpcConfig.Subnets",
        "HF608": "Lustre.Properties.StorageCapacity",
        "HF611": "Lustre.Properties.StorageCapacity",
        "HF618": "LinkB.Properties.FileSystemPath",
        "HF621": "Lustre.Properties.LustreConfiguration.ImportPath",
        "HF622": "Lustre.Properties.FileSystemTypeVersion",
    },
}
"""Where the first finding of each code is that has to be there, without ``Resources.`` before it."""

Change = Callable[[dict[str, Any]], None]


def template(case: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((CASES / f"{case}.json").read_text())
    return body


def deployment(body: Mapping[str, Any], *others: Template) -> Deployment:
    own = Template(body=body, region="us-west-2", account="111122223333", files=SCRIPTS.get)
    (found,) = deployments_in_app([own, *others])
    return found


def findings(case: str, change: Change | None = None) -> list[Finding]:
    body = template(case)
    if change is not None:
        change(body["Resources"])
        for resource in body["Resources"].values():
            if isinstance(resource, dict) and isinstance(resource.get("DependsOn"), list):
                resource["DependsOn"] = [name for name in resource["DependsOn"] if name in body["Resources"]]
        body["Parameters"] = {name: {"Type": "String"} for name in ("SubnetParameter", "VpcParameter", "Parameter")}
        body["Conditions"] = {"Sometimes": {"Fn::Equals": [{"Ref": "Parameter"}, "yes"]}}
    return judge(deployment(body))


def wrong(found: list[Finding]) -> list[Finding]:
    return [finding for finding in found if finding.severity != "not-checked"]


@pytest.mark.parametrize("case", sorted(EXPECTED))
def test_every_defect_is_named_with_its_path_and_a_fix(case: str) -> None:
    found = wrong(findings(case))
    first = {finding.code: finding.path for finding in reversed(found)}

    assert {code: first.get(code) for code in EXPECTED[case]} == {
        code: f"Resources.{path}" for code, path in EXPECTED[case].items()
    }
    assert all(finding.message and finding.fix for finding in found)


def test_the_eight_defects_are_all_that_is_wrong_in_their_template() -> None:
    assert {finding.code for finding in wrong(findings("eight-defects"))} == set(EXPECTED["eight-defects"])


@pytest.mark.parametrize("case", sorted(EXPECTED))
def test_the_clean_twin_has_neither_error_nor_warning(case: str) -> None:
    assert [str(finding) for finding in wrong(findings(f"{case}.clean"))] == []


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(name, marks=[pytest.mark.e2e] * (name != "eight-defects"))
        for name in sorted(path.stem for path in CASES.glob("*.json"))
    ],
)
def test_cfn_lint_prints_nothing_about_any_of_them(case: str) -> None:
    from cfnlint.api import ManualArgs, lint

    text = (CASES / f"{case}.json").read_text()

    assert [str(finding) for finding in lint(text, config=ManualArgs(regions=["us-west-2"]))] == []


def test_one_deployment_per_cluster() -> None:
    body = template("eight-defects.clean")
    body["Resources"]["Another"] = copy.deepcopy(body["Resources"]["Cluster"])

    assert [found.path for found in deployments_in_app([Template(body=body)])] == [
        "Resources.Cluster.Properties",
        "Resources.Another.Properties",
    ]


def test_a_template_without_a_cluster_has_no_deployment() -> None:
    assert deployments_in_app([Template(body={"Resources": {"Vpc": {"Type": "AWS::EC2::VPC"}}})]) == []


def test_paths_begin_with_the_path_of_the_template() -> None:
    (found,) = deployments_in_app([Template(body=template("eight-defects.clean"), path="app/Demo.template.json")])

    assert found.cluster.at("name") == "app/Demo.template.json#Resources.Cluster.Properties.ClusterName"


def unknown_group(resources: dict[str, Any]) -> None:
    resources["Cluster"]["Properties"]["VpcConfig"]["SecurityGroupIds"] = [{"Fn::ImportValue": "group"}]


def unknown_subnet(resources: dict[str, Any]) -> None:
    resources["Cluster"]["Properties"]["VpcConfig"]["Subnets"] = [{"Ref": "SubnetParameter"}]


def subnet_of_unknown_vpc(resources: dict[str, Any]) -> None:
    resources["NodesSubnet"]["Properties"]["VpcId"] = {"Ref": "VpcParameter"}


def role_of_somebody_else(resources: dict[str, Any]) -> None:
    for group in resources["Cluster"]["Properties"]["InstanceGroups"]:
        group["ExecutionRole"] = "arn:aws:iam::111122223333:role/nodes"


def scripts_elsewhere(resources: dict[str, Any]) -> None:
    del resources["Delivery"]


def unknown_route(resources: dict[str, Any]) -> None:
    resources["PublicRoute"]["Properties"]["RouteTableId"] = {"Ref": "Parameter"}


def conditional_egress(resources: dict[str, Any]) -> None:
    resources["NodesEgress"]["Condition"] = "Sometimes"


def macro(resources: dict[str, Any]) -> None:
    del resources["NodesEgress"]
    resources["Fn::ForEach::Rules"] = ["Name", ["a"], {}]


def unknown_policy(resources: dict[str, Any]) -> None:
    del resources["Policy"]
    resources["Role"]["Properties"]["ManagedPolicyArns"].append("arn:aws:iam::111122223333:policy/network")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (unknown_group, "HF205"),
        (unknown_subnet, "HF203"),
        (subnet_of_unknown_vpc, "HF211"),
        (role_of_somebody_else, "HF512"),
        (scripts_elsewhere, "HF416"),
        (unknown_route, "HF203"),
        (conditional_egress, "HF205"),
        (macro, "HF205"),
        (unknown_policy, "HF512"),
    ],
)
def test_what_is_not_known_is_not_checked_and_never_silent(change: Change, code: str) -> None:
    found = findings("real-deploy.clean", change)

    assert [str(finding) for finding in found if finding.severity == "error"] == []
    assert code in {finding.code for finding in found if finding.severity == "not-checked"}


@pytest.mark.parametrize(("transform", "known"), [("AWS::LanguageExtensions", True), (["AWS::Include", "Mine"], False)])
def test_only_a_transform_that_may_make_resources_makes_things_unknown(transform: object, known: bool) -> None:
    body = template("real-deploy") | {"Transform": transform}
    found = judge(deployment(body))

    assert ("HF205" in {finding.code for finding in found if finding.severity == "error"}) is known


def test_a_rule_that_may_belong_to_another_group_does_not_hide_one_that_surely_is_there() -> None:
    def change(resources: dict[str, Any]) -> None:
        rule = copy.deepcopy(resources["NodesEgress"])
        rule["Properties"]["GroupId"] = {"Ref": "Parameter"}
        resources["AnotherRule"] = rule

    assert "HF205" not in {finding.code for finding in findings("real-deploy.clean", change)}


def split(case: str, *, moved: str) -> tuple[dict[str, Any], Template]:
    """A case whose network is in a stack of its own, as the CDK refers to one."""
    body = template(case)
    names = [name for name, item in body["Resources"].items() if item["Type"].startswith("AWS::EC2::")]
    network = {name: body["Resources"].pop(name) for name in names}
    body["Resources"]["Cluster"]["DependsOn"] = ["Policy", "Delivery"]
    text = json.dumps(body)
    outputs = {}
    for value in ({"Fn::GetAtt": ["NodesGroup", "GroupId"]}, {"Ref": "NodesSubnet"}):
        name = f"Network:{json.dumps(value)}"
        outputs[f"Out{len(outputs)}"] = {"Value": value, "Export": {"Name": name}}
        imported = {"Fn::ImportValue": name} if moved == "exports" else {"Ref": f"Given{len(outputs) - 1}"}
        text = text.replace(json.dumps(value), json.dumps(imported))
    other = Template(
        body={"Resources": network, "Outputs": outputs},
        path="Network.template.json",
        region="us-west-2",
        account="111122223333",
    )
    return json.loads(text), other


def test_what_another_stack_exports_is_judged_as_if_it_were_here() -> None:
    body, network = split("real-deploy", moved="exports")
    found = {finding.code: finding.path for finding in judge(deployment(body, network)) if finding.severity == "error"}

    assert found["HF205"] == "Network.template.json#Resources.NodesGroup.Properties.SecurityGroupEgress"
    body, network = split("real-deploy.clean", moved="exports")
    assert wrong(judge(deployment(body, network))) == []


def test_without_the_other_stack_its_exports_are_not_known() -> None:
    body, _ = split("real-deploy", moved="exports")

    assert "HF205" in {finding.code for finding in judge(deployment(body)) if finding.severity == "not-checked"}


def test_what_a_nested_stack_is_given_is_judged_as_if_it_were_here() -> None:
    body, network = split("real-deploy", moved="parameters")
    digest = "c" * 64
    parent = copy.deepcopy(dict(network.body))
    parent["Resources"]["Nested"] = {
        "Type": "AWS::CloudFormation::Stack",
        "Properties": {
            "TemplateURL": {"Fn::Sub": f"https://s3.${{AWS::URLSuffix}}/assets/{digest}.json"},
            "Parameters": {"Given0": {"Fn::GetAtt": ["NodesGroup", "GroupId"]}, "Given1": {"Ref": "NodesSubnet"}},
        },
    }
    nested = Template(body=body, path="Nested", region="us-west-2", account="111122223333", asset=digest)
    (found,) = deployments_in_app([Template(body=parent, region="us-west-2", account="111122223333"), nested])

    assert [group.id for group in found.cluster.vpc.security_groups] == ["NodesGroup"]  # type: ignore[union-attr]
    assert "HF205" in {finding.code for finding in judge(found) if finding.severity == "error"}


def test_a_control_plane_of_somebody_else_is_not_known() -> None:
    body = template("eks-defects.clean")
    arn = "arn:aws:eks:us-west-2:111122223333:cluster/other"
    body["Resources"]["Cluster"]["Properties"]["Orchestrator"]["Eks"]["ClusterArn"] = arn
    eks = deployment(body).cluster.eks
    assert eks is not None

    assert eks.cluster_arn == arn
    with pytest.raises(UnresolvedError):
        _ = eks.control_plane


def test_a_control_plane_is_found_by_the_name_in_an_arn() -> None:
    body = template("eks-defects.clean")
    arn = {"Fn::Sub": "arn:aws:eks:us-west-2:${AWS::AccountId}:cluster/demo-eks"}
    body["Resources"]["Cluster"]["Properties"]["Orchestrator"]["Eks"]["ClusterArn"] = arn
    eks = deployment(body).cluster.eks

    assert eks is not None
    assert eks.control_plane is not None
    assert [addon.name for addon in eks.control_plane.addons] == ["vpc-cni", "eks-pod-identity-agent"]
    assert {release.chart for release in eks.control_plane.releases if release.before_cluster} >= {
        "health-monitoring-agent"
    }
    assert [(entry.type, entry.principal) for entry in eks.control_plane.access_entries] == [("HYPERPOD_LINUX", "Role")]


def test_a_cluster_of_the_older_eks_module_of_the_cdk_is_read_too() -> None:
    body = template("eks-defects.clean")
    body["Resources"]["Kubernetes"] = {
        "Type": "Custom::AWSCDK-EKS-Cluster",
        "Properties": {
            "Config": {
                "version": "1.36",
                "accessConfig": {"authenticationMode": "CONFIG_MAP"},
                "resourcesVpcConfig": {"subnetIds": [{"Ref": "NodesSubnet"}], "endpointPrivateAccess": True},
            }
        },
    }
    codes = {finding.code for finding in judge(deployment(body)) if finding.severity == "error"}

    assert {"HF301", "HF302"} <= codes


def test_a_file_system_of_another_cluster_is_none_of_this_one() -> None:
    body = template("storage-defects.clean")
    other = copy.deepcopy(body["Resources"]["Cluster"])
    for group in other["Properties"]["InstanceGroups"]:
        group.pop("InstanceStorageConfigs")
    body["Resources"]["Another"] = other
    first, second = deployments_in_app([Template(body=body)])

    assert [item.id for item in first.lustre_file_systems] == ["Lustre"]
    assert second.lustre_file_systems == ()


@pytest.mark.parametrize("name", ["fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com", {"Fn::ImportValue": "lustre"}])
def test_a_file_system_of_somebody_else_is_not_checked(name: Any) -> None:
    def change(resources: dict[str, Any]) -> None:
        for group in resources["Cluster"]["Properties"]["InstanceGroups"]:
            group["InstanceStorageConfigs"][-1]["FsxLustreConfig"]["DnsName"] = name

    found = findings("storage-defects.clean", change)
    assert [str(finding) for finding in found if finding.severity == "error"] == []
    assert "HF613" in {finding.code for finding in found if finding.severity == "not-checked"}


def test_links_that_are_made_one_after_the_other_wait_for_each_other() -> None:
    (lustre,) = deployment(template("storage-defects.clean")).lustre_file_systems

    assert [(link.file_system_path, link.waits_for_others) for link in lustre.data_repository_associations] == [
        ("/data", True),
        ("/more", True),
    ]
    assert [link.data_repository_path for link in lustre.data_repository_associations] == [
        "s3://${Data}/data",
        "s3://${Data}/more",
    ]


@pytest.mark.parametrize("path", ["/../../etc", "/ns/..", "/ns/./x", "//ns", "/ns//"])
def test_a_folder_of_a_link_that_leads_elsewhere_is_refused(path: str) -> None:
    def change(resources: dict[str, Any]) -> None:
        resources["LinkB"]["Properties"]["FileSystemPath"] = path

    found = [one for one in wrong(findings("storage-defects.clean", change)) if one.code == "HF618"]
    assert [one.path for one in found] == ["Resources.LinkB.Properties.FileSystemPath"]
    assert "without '//', '.' and '..'" in found[0].message


@pytest.mark.parametrize("path", ["/ns1/", "/ns1/sub.dir", "/..ns", "/a b"])
def test_a_folder_of_a_link_may_have_any_name(path: str) -> None:
    def change(resources: dict[str, Any]) -> None:
        resources["LinkB"]["Properties"]["FileSystemPath"] = path

    assert "HF618" not in {one.code for one in wrong(findings("storage-defects.clean", change))}
