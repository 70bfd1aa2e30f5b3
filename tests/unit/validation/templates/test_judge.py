"""Findings in templates: their lines, both branches, nested stacks, and templates that hold no cluster."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.validation import Finding
from holdfast.validation.from_template import Report, check_template

CASES = Path(__file__).parents[3] / "cases" / "templates"
Change = Callable[[dict[str, Any]], None]


def case(name: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text())
    return body


def check(path: Path, body: object, **options: Any) -> Report:
    path.write_text(body if isinstance(body, str) else yaml.safe_dump(body, sort_keys=False))
    return check_template(path, **options)


def wrong(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.severity != "not-checked"]


def codes(report: Report) -> set[str]:
    return {finding.code for finding in wrong(report)}


def unchecked(report: Report) -> list[str]:
    return sorted({finding.cause for finding in report.findings if finding.severity == "not-checked"})


@pytest.mark.parametrize("name", sorted(path.stem for path in CASES.glob("*.json")))
@pytest.mark.parametrize("linted", [False, pytest.param(True, marks=pytest.mark.e2e)])
def test_yaml_and_json_of_the_same_template_have_the_same_findings(name: str, linted: bool, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(case(name), indent=2))
    in_json = check_template(tmp_path / "a.json", linted=linted)
    in_yaml = check(tmp_path / "a.yaml", case(name), linted=linted)

    def told(report: Report) -> set[tuple[str, str, str]]:
        return {(each.code, each.path.rpartition("#")[2], each.message) for each in report.findings}

    assert told(in_json) == told(in_yaml)


CHOSEN = """
Parameters:
  Kind: {Type: String, Default: PERSISTENT_2, AllowedValues: [PERSISTENT_1, PERSISTENT_2]}
  Throughput: {Type: Number, Default: 250}
Conditions:
  Old: !Equals [!Ref Kind, PERSISTENT_1]
Resources:
  Lustre:
    Type: AWS::FSx::FileSystem
    Properties:
      FileSystemType: LUSTRE
      StorageCapacity: 4800
      SubnetIds: [subnet-0123456789abcdef0]
      LustreConfiguration:
        DeploymentType: !If [Old, PERSISTENT_1, PERSISTENT_2]
        PerUnitStorageThroughput: !Ref Throughput
"""


def test_the_default_of_a_parameter_is_judged_with_the_defaults_of_the_others(tmp_path: Path) -> None:
    right = check(tmp_path / "a.yaml", CHOSEN, linted=False)
    fixed = check(tmp_path / "b.yaml", CHOSEN.replace("!Ref Throughput", "250"), linted=False)
    wrong = check(tmp_path / "c.yaml", CHOSEN.replace("Default: 250", "Default: 300"), linted=False)
    made = CHOSEN.replace("FileSystem\n", "FileSystem\n    Condition: Old\n").replace(
        "!If [Old, PERSISTENT_1, PERSISTENT_2]", "PERSISTENT_1"
    )
    only_then = check(tmp_path / "d.yaml", made, linted=False)

    assert "HF609" not in codes(right), "with PERSISTENT_1 another throughput is chosen"
    assert "HF609" in codes(fixed)
    assert "HF609" in codes(wrong)
    assert "HF609" in codes(only_then), "it is made with this parameter alone, and fails with the defaults"


def test_every_finding_has_the_line_at_which_its_place_begins(tmp_path: Path) -> None:
    report = check(tmp_path / "a.yaml", case("eight-defects"))
    lines = (tmp_path / "a.yaml").read_text().splitlines()

    for finding in wrong(report):
        assert finding.line is not None
        around, _, key = finding.path.rpartition(".")
        written = lines[finding.line - 1].strip().removeprefix("- ").partition(":")[0]
        assert written in (key, around.rpartition(".")[2]), "the place itself, or what lacks it"


def test_other_places_are_named_by_key_and_never_by_the_path_of_a_file(tmp_path: Path) -> None:
    report = check(tmp_path / "a.yaml", case("eight-defects"))

    (twice,) = [finding for finding in report.findings if finding.code == "HF104"]
    assert "Resources.Cluster.Properties.InstanceGroups" in twice.message
    assert not any(str(tmp_path) in finding.message + finding.fix for finding in report.findings)


def with_condition(body: dict[str, Any]) -> dict[str, Any]:
    """The wrong type of a group only where somebody asks for it."""
    body["Parameters"] = {"Size": {"Type": "String", "Default": "small", "AllowedValues": ["small", "large"]}}
    body["Conditions"] = {"Large": {"Fn::Equals": [{"Ref": "Size"}, "large"]}}
    group = body["Resources"]["Cluster"]["Properties"]["InstanceGroups"][0]
    group["InstanceType"] = {"Fn::If": ["Large", "p5.48xlarge", group["InstanceType"]]}
    return body


def test_what_is_wrong_in_the_branch_that_is_not_usual_is_found_and_says_when(tmp_path: Path) -> None:
    report = check(tmp_path / "a.yaml", with_condition(case("eight-defects.clean")))

    (finding,) = [each for each in wrong(report) if each.code == "HF106"]
    assert finding.message.endswith('(with Size = "large")')
    assert finding.line is not None
    assert "p5.48xlarge" in (tmp_path / "a.yaml").read_text().splitlines()[finding.line - 1]


def test_values_of_parameters_decide_which_branch_is_judged(tmp_path: Path) -> None:
    body = with_condition(case("eight-defects.clean"))

    assert "HF106" not in codes(check(tmp_path / "a.yaml", body, parameters={"Size": "small"}))
    assert "HF106" in codes(check(tmp_path / "a.yaml", body, parameters={"Size": "large"}))
    with pytest.raises(ValueError, match=r"the parameter Siez; the template has: Size"):
        check(tmp_path / "a.yaml", body, parameters={"Siez": "small"})


def test_a_default_is_judged_and_an_empty_one_is_not_known(tmp_path: Path) -> None:
    body = case("eight-defects.clean")
    body["Parameters"] = {
        "Type": {"Type": "String", "Default": "p5.48xlarge"},
        "Count": {"Type": "Number", "Default": ""},
    }
    group = body["Resources"]["Cluster"]["Properties"]["InstanceGroups"][1]
    group["InstanceType"], group["InstanceCount"] = {"Ref": "Type"}, {"Ref": "Count"}

    report = check(tmp_path / "a.yaml", body)

    assert "HF106" in codes(report)
    assert "the value of Count is not known before deployment" in unchecked(report)


def test_a_resource_whose_condition_does_not_hold_is_not_there(tmp_path: Path) -> None:
    body = case("eight-defects")
    body["Parameters"] = {"Make": {"Type": "String", "Default": "no", "AllowedValues": ["no"]}}
    body["Conditions"] = {"Make": {"Fn::Equals": [{"Ref": "Make"}, "yes"]}}
    body["Resources"]["Cluster"]["Condition"] = "Make"

    assert not {"HF104", "HF403", "HF407"} & codes(check(tmp_path / "a.yaml", body))


def test_the_region_of_a_template_is_where_the_user_says(tmp_path: Path) -> None:
    body = case("eight-defects.clean")
    subnet = body["Resources"]["NodesSubnet"]["Properties"]
    zone = subnet["AvailabilityZone"]
    region = zone[:-1] if isinstance(zone, str) else "us-west-2"
    subnet["AvailabilityZone"] = f"{region}a"

    assert "HF210" not in codes(check(tmp_path / "a.yaml", body, region=region))
    assert "HF210" in codes(check(tmp_path / "a.yaml", body, region="eu-north-1"))


NETWORK = """
Resources:
  Vpc: {Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.1.0.0/16}}
  More: {Type: AWS::EC2::VPCCidrBlock, Properties: {VpcId: !Ref Vpc, CidrBlock: 10.2.0.0/16}}
  Inside: {Type: AWS::EC2::Subnet, Properties: {VpcId: !Ref Vpc, CidrBlock: 10.1.0.0/24, AvailabilityZone: us-west-2a}}
  Second: {Type: AWS::EC2::Subnet, Properties: {VpcId: !Ref Vpc, CidrBlock: 10.2.0.0/24, AvailabilityZone: us-west-2a}}
"""


def test_a_network_alone_is_judged_and_a_secondary_block_counts(tmp_path: Path) -> None:
    outside = NETWORK.replace("10.2.0.0/24", "10.3.0.0/24")

    assert codes(check(tmp_path / "a.yaml", NETWORK, region="us-west-2")) == set()
    assert unchecked(check(tmp_path / "a.yaml", NETWORK, region="us-west-2")) == []
    (finding,) = [
        each for each in wrong(check(tmp_path / "a.yaml", outside, region="us-west-2")) if each.code == "HF215"
    ]
    assert finding.line == 6
    assert "10.1.0.0/16 or 10.2.0.0/16" in finding.message


def test_a_secondary_block_that_is_not_known_leaves_the_subnet_unchecked(tmp_path: Path) -> None:
    text = NETWORK.replace("CidrBlock: 10.2.0.0/16", "Ipv4IpamPoolId: pool")

    report = check(tmp_path / "a.yaml", text, region="us-west-2")

    assert codes(report) == set()
    assert "HF215" in {finding.code for finding in report.findings}


def test_file_systems_control_planes_roles_and_logs_alone_are_judged(tmp_path: Path) -> None:
    text = """
Resources:
  Data:
    Type: AWS::FSx::FileSystem
    DeletionPolicy: Retain
    Properties:
      FileSystemType: LUSTRE
      StorageCapacity: 1300
      SubnetIds: [subnet-0123456789abcdef0]
      LustreConfiguration: {DeploymentType: PERSISTENT_2, PerUnitStorageThroughput: 250}
  Kubernetes:
    Type: AWS::EKS::Cluster
    Properties: {Version: "1.10", RoleArn: x, ResourcesVpcConfig: {SubnetIds: [subnet-1], EndpointPublicAccess: true}}
  Nodes:
    Type: AWS::IAM::Role
    Properties:
      ManagedPolicyArns: [arn:aws:iam::aws:policy/AmazonSageMakerClusterInstanceRolePolicy]
      Policies: [{PolicyName: p, PolicyDocument: {Statement: [{Effect: Allow, Action: "*", Resource: "*"}]}}]
  Other:
    Type: AWS::IAM::Role
    Properties:
      Policies: [{PolicyName: p, PolicyDocument: {Statement: [{Effect: Allow, Action: "*", Resource: "*"}]}}]
  Logs: {Type: AWS::Logs::LogGroup}
"""
    found = {
        (each.code, each.path.rpartition("#")[2].split(".")[1]) for each in wrong(check(tmp_path / "a.yaml", text))
    }

    assert {("HF608", "Data"), ("HF301", "Kubernetes"), ("HF302", "Kubernetes"), ("HF809", "Logs")} <= found
    assert ("HF514", "Nodes") in found
    assert ("HF514", "Other") not in found


def test_a_template_that_holds_nothing_of_ours_has_no_finding(tmp_path: Path) -> None:
    assert check(tmp_path / "a.yaml", "Resources:\n  Queue: {Type: AWS::SQS::Queue}\n").findings == []


def test_nested_stacks_beside_a_template_are_judged_with_it_each_in_its_file(tmp_path: Path) -> None:
    whole = case("storage-defects")
    network = {name: body for name, body in whole["Resources"].items() if body["Type"].startswith("AWS::EC2::")}
    rest = {name: body for name, body in whole["Resources"].items() if name not in network}
    assert network, "the case has a network of its own"
    child = {"Resources": copy.deepcopy(whole["Resources"])}
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "child.yaml").write_text(yaml.safe_dump(child))
    parent = {
        "Resources": {"Part": {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": "parts/child.yaml"}}}
    }

    report = check(tmp_path / "parent.yaml", parent)

    assert rest
    assert "HF608" in codes(report)
    files = {finding.path.partition("#")[0] for finding in wrong(report)}
    assert files == {str(tmp_path / "parts" / "child.yaml")}


@pytest.mark.parametrize(
    "place", ["https://s3.amazonaws.com/bucket/child.yaml", "not-there.yaml", "parent.yaml", "a\0b"]
)
def test_nested_stacks_that_are_elsewhere_are_one_line(place: str, tmp_path: Path) -> None:
    stack = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": place}}

    report = check(tmp_path / "parent.yaml", json.dumps({"Resources": {"One": stack, "Two": stack}}))

    assert unchecked(report) == ["the templates of nested stacks are not beside this one: One, Two"]


@pytest.mark.parametrize(
    ("place", "missing"), [("not-there.yaml", True), ("child.yaml", False), ("https://bucket/child.yaml", False)]
)
def test_a_template_url_has_to_name_a_file_that_is_beside_the_template(
    place: str, missing: bool, tmp_path: Path
) -> None:
    (tmp_path / "child.yaml").write_text("Resources: {Topic: {Type: AWS::SNS::Topic}}")
    stack = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": place}}

    report = check(tmp_path / "parent.yaml", {"Resources": {"One": stack}})

    assert [finding.path.rpartition("#")[2] for finding in wrong(report) if finding.code == "HF070"] == (
        ["Resources.One.Properties.TemplateURL"] if missing else []
    )


def test_a_nested_stack_that_cannot_be_read_is_the_one_finding(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text("Resources: [")
    report = check(
        tmp_path / "parent.yaml",
        "Resources: {A: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: child.yaml}}}",
    )

    assert not report.usable
    (finding,) = report.findings
    assert (finding.code, finding.path) == ("HF001", f"{tmp_path / 'child.yaml'}#")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Transform: AWS::Serverless-2016-10-31\nResources: {A: {Type: AWS::Serverless::Function}}", "AWS::Serverless"),
        ("Transform: [OurMacro]\nResources: {A: {Type: AWS::SQS::Queue}}", "OurMacro"),
        ("Transform: {Name: AWS::Include, Parameters: {}}\nResources: {A: {Type: T}}", "AWS::Include"),
        ("Resources: {A: {Type: T, Properties: {Fn::Transform: {Name: M}}}}", "Fn::Transform"),
        (
            "Transform: AWS::LanguageExtensions\nResources: {Fn::ForEach::L: [I, !Ref P, {}], A: {Type: T}}",
            "ForEach::L",
        ),
    ],
)
def test_what_macros_make_is_one_line(text: str, cause: str, tmp_path: Path) -> None:
    report = check(tmp_path / "a.yaml", text)

    (told,) = unchecked(report)
    assert cause in told


def test_a_cause_is_named_by_what_is_not_known(tmp_path: Path) -> None:
    body = case("eight-defects.clean")
    vpc = body["Resources"]["Cluster"]["Properties"]["VpcConfig"]
    vpc["Subnets"] = [{"Ref": "Subnet"}]
    vpc["SecurityGroupIds"] = [{"Fn::ImportValue": "group"}]
    body["Parameters"] = {"Subnet": {"Type": "AWS::EC2::Subnet::Id"}}

    causes = unchecked(check(tmp_path / "a.yaml", body))

    assert "the value of Subnet is not known before deployment" in causes
    assert "the export group is not known before deployment" in causes


def test_a_role_of_nodes_needs_no_access_entry_of_its_own(tmp_path: Path) -> None:
    body = case("eks-defects.clean")
    entries = [name for name, each in body["Resources"].items() if each["Type"] == "AWS::EKS::AccessEntry"]
    for name in entries:
        del body["Resources"][name]
    for each in body["Resources"].values():
        if isinstance(each.get("DependsOn"), list):
            each["DependsOn"] = [name for name in each["DependsOn"] if name not in entries]

    assert entries
    assert "HF306" not in codes(check(tmp_path / "a.yaml", body))


def test_charts_that_a_custom_resource_may_install_are_not_missed(tmp_path: Path) -> None:
    body = case("eks-defects.clean")
    for name, each in list(body["Resources"].items()):
        if "Helm" in each["Type"]:
            body["Resources"][name] = {
                "Type": "Custom::InstallHelmCharts",
                "Properties": {"ServiceToken": "arn:aws:lambda:us-west-2:111122223333:function:f"},
            }

    report = check(tmp_path / "a.yaml", body)

    assert "HF305" not in codes(report)
    assert "HF305" in {finding.code for finding in report.findings}


def test_a_circle_that_a_condition_closes_is_told_with_the_value_that_does(tmp_path: Path) -> None:
    text = """
Parameters: {Both: {Type: String, Default: "no"}}
Conditions: {Both: !Equals [!Ref Both, "yes"]}
Resources:
  A: {Type: AWS::SQS::Queue, DependsOn: [B]}
  B: {Type: AWS::SQS::Queue, Properties: {QueueName: !Sub "${C}-b"}}
  C: {Type: AWS::SQS::Queue, Properties: {QueueName: !If [Both, !GetAtt A.QueueName, c]}}
  Itself: {Type: AWS::SQS::Queue, DependsOn: Itself}
"""
    found = [each for each in wrong(check(tmp_path / "a.yaml", text)) if each.code == "HF023"]

    assert [(each.line, each.message.partition(";")[0]) for each in found] == [
        (5, "got the circle A -> B -> C -> A"),
        (8, "got the circle Itself -> Itself"),
    ]
    assert found[0].message.endswith('(with Both = "yes")')


def test_a_nat_gateway_that_a_template_gives_to_others_is_not_called_unused(tmp_path: Path) -> None:
    text = """
Resources:
  Vpc: {Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.1.0.0/16}}
  Subnet: {Type: AWS::EC2::Subnet, Properties: {VpcId: !Ref Vpc, CidrBlock: 10.1.0.0/24}}
  Used: {Type: AWS::EC2::NatGateway, Properties: {SubnetId: !Ref Subnet, ConnectivityType: private}}
  Idle: {Type: AWS::EC2::NatGateway, Properties: {SubnetId: !Ref Subnet, ConnectivityType: private}}
Outputs:
  Gateway: {Value: !Ref Used}
"""
    found = [each for each in wrong(check(tmp_path / "a.yaml", text)) if each.code == "HF242"]

    assert [each.path.rpartition("#")[2].split(".")[1] for each in found] == ["Idle"]


@pytest.mark.parametrize(("folder", "refused"), [("/ns/../..", True), ("/ns", False), ("${Folder}/..", False)])
def test_a_link_of_a_template_without_a_cluster_leads_nowhere_else(folder: str, refused: bool, tmp_path: Path) -> None:
    place: object = {"Fn::Sub": folder} if "$" in folder else folder
    link = {"FileSystemId": "fs-1", "FileSystemPath": place, "DataRepositoryPath": "s3://bucket/data"}
    body = {
        "Parameters": {"Folder": {"Type": "String"}},
        "Resources": {"Link": {"Type": "AWS::FSx::DataRepositoryAssociation", "Properties": link}},
    }
    assert ("HF652" in codes(check(tmp_path / "a.yaml", body))) is refused
