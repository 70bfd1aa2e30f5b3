"""What cfn-lint finds in a template is passed on under its codes, once for each mistake, and nothing that is none."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.validation import Finding
from holdfast.validation.cfn_lint import LEFT_OUT, linted_rule
from holdfast.validation.from_template import check_template
from holdfast.validation.pages import Example, findings_of

ENTRY = "Resources.Cluster.Properties"
GROUP = f"{ENTRY}.InstanceGroups.1"


def found_in(text: str, folder: Path, **options: Any) -> list[Finding]:
    (folder / "a.yaml").write_text(text)
    return check_template(folder / "a.yaml", **options).findings


def codes(findings: list[Finding]) -> list[str]:
    return [each.code for each in findings if each.severity != "not-checked"]


GENERIC: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "a misspelt property": (
        {"Resources.Logs.Properties.RetentionInDay": 30},
        "E3002",
        "RetentionInDay",
        "RetentionInDays",
    ),
    "a property that is missing": (
        {"Resources.Nodes.Properties.GroupDescription": None},
        "E3003",
        "GroupDescription",
        "add",
    ),
    "a word that is none of the schema's": (
        {"Resources.Logs.Properties.RetentionInDays": 45},
        "E3030",
        "InDays",
        "choose",
    ),
    "a word in place of true or false": (
        {"Resources.NodesSubnet.Properties.MapPublicIpOnLaunch": "maybe"},
        "E3012",
        "MapPublicIpOnLaunch",
        "write true or false",
    ),
    "a misspelt type": ({"Resources.Topic": {"Type": "AWS::SNS::Topics"}}, "E3006", "Type", "AWS::SNS::Topic?"),
    "a policy that does not exist": ({"Resources.FileSystem.UpdateReplacePolicy": "Keep"}, "E3036", "Policy", "choose"),
    "a reference to nothing": (
        {"Resources.NodesRoute.Properties.NatGatewayId": {"Ref": "Nats"}},
        "E1020",
        "Id",
        "Nat?",
    ),
    "an attribute that does not exist": (
        {"Resources.Nat.Properties.AllocationId": {"Fn::GetAtt": ["NatAddress", "AllocationID"]}},
        "E1010",
        "AllocationId",
        "AllocationId?",
    ),
    "an identity that another has": (
        {
            "Resources.Second": {
                "Type": "AWS::Logs::LogGroup",
                "Properties": {"LogGroupName": "n", "RetentionInDays": 30},
            }
        }
        | {
            "Resources.Third": {
                "Type": "AWS::Logs::LogGroup",
                "Properties": {"LogGroupName": "n", "RetentionInDays": 30},
            }
        },
        "E3019",
        "LogGroupName",
        "correct it",
    ),
    "a description of what has none": (
        {"Resources.Logs.Properties.Description": "x"},
        "E3002",
        "Description",
        "remove",
    ),
    "a name that the API does not take": (
        {f"{GROUP}.InstanceGroupName": "p5.workers"},
        "E3031",
        "GroupName",
        "correct",
    ),
    "a number that the API does not take": ({f"{GROUP}.ThreadsPerCore": 4}, "E3034", "ThreadsPerCore", "correct it"),
    "more than there may be": (
        {f"{GROUP}.SlurmConfig.PartitionNames": ["a", "b"]},
        "E3032",
        "PartitionNames",
        "correct it",
    ),
    "a version of IAM's language that does not exist": (
        {"Resources.Role.Properties.Policies.0.PolicyDocument.Version": "x"},
        "E3510",
        "Version",
        "choose",
    ),
    # A function in one of several forms makes cfn-lint 1.58 skip all of it.
    "a misspelling beside a function": (
        {f"{GROUP}.InstanceStorageConfigs.0.FsxLustreConfig.MountPaths": "/fsx"},
        "E3002",
        "FsxLustreConfig.MountPaths",
        "MountPath?",
    ),
}


@pytest.mark.parametrize(("changes", "code", "place", "fix"), GENERIC.values(), ids=GENERIC)
def test_a_mistake_in_any_template_has_the_code_of_cfn_lint_its_place_and_a_fix(
    changes: dict[str, Any], code: str, place: str, fix: str, tmp_path: Path
) -> None:
    found = findings_of(Example(base="slurm.template.json", changes=changes), folder=tmp_path)

    (finding,) = [each for each in found if each.severity != "not-checked"]
    assert (finding.code, finding.severity, finding.line) == (code, "error", 1)
    assert finding.path.endswith(place)
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        pytest.param({f"{GROUP}.InstanceCount": -1}, "HF105", id="the same place"),
        pytest.param({f"{GROUP}.OnStartDeepHealthChecks": ["Stress"]}, "HF708", id="an entry of the list"),
        pytest.param({f"{GROUP}.InstanceStorageConfigs.1": {"EbsVolumeConfig": {}}}, "HF601", id="what is missing"),
    ],
)
def test_one_mistake_has_one_code_and_that_is_ours(changes: dict[str, Any], code: str, tmp_path: Path) -> None:
    found = findings_of(Example(base="slurm.template.json", changes=changes), folder=tmp_path)

    assert codes(found) == [code]


PARAMETER = """
Parameters: {Group: {Type: String, Default: DEFAULT}}
Resources:
  Rule: {Type: AWS::EC2::SecurityGroupIngress, Properties: {GroupId: !Ref Group, IpProtocol: "-1", CidrIp: 10.0.0.0/8}}
"""


@pytest.mark.parametrize(("default", "expected"), [("sg-1", ["W1030"]), ('""', []), ("sg-0123456789abcdef0", [])])
def test_a_default_is_judged_where_it_is_used_and_an_empty_one_is_not(
    default: str, expected: list[str], tmp_path: Path
) -> None:
    found = found_in(PARAMETER.replace("DEFAULT", default), tmp_path)

    assert codes(found) == expected
    assert all(each.path.endswith("Resources.Rule.Properties.GroupId") for each in found)
    given = found_in(PARAMETER.replace("DEFAULT", default), tmp_path, parameters={"Group": "sg-2"})
    assert codes(given) == ["W1030"]


@pytest.mark.parametrize(
    ("place", "accepted"),
    [("top", ["E3002"]), ("resource", ["E3002"]), ("top", ["E3"]), ("resource", []), ("top", [])],
)
def test_a_template_accepts_a_code_as_it_does_for_cfn_lint(place: str, accepted: list[str], tmp_path: Path) -> None:
    metadata = f"Metadata: {{cfn-lint: {{config: {{ignore_checks: {accepted}}}}}}}"
    body = "{Type: AWS::SQS::Queue, Properties: {Foo: 1}}"
    text = f"{metadata}\nResources: {{Queue: {body}}}"
    if place == "resource":
        text = f"Resources: {{Queue: {body[:-1]}, {metadata}}}}}"

    assert codes(found_in(text, tmp_path)) == ([] if accepted else ["E3002"])


def test_resources_that_wait_for_each_other_under_other_conditions_are_no_circle(tmp_path: Path) -> None:
    text = """
Parameters: {First: {Type: String}}
Conditions: {First: !Equals [!Ref First, "yes"]}
Resources:
  A: {Type: AWS::SQS::Queue, Properties: {QueueName: !If [First, !GetAtt B.QueueName, a]}}
  B: {Type: AWS::SQS::Queue, Properties: {QueueName: !If [First, b, !GetAtt A.QueueName]}}
"""

    assert codes(found_in(text, tmp_path)) == []


@pytest.mark.parametrize(
    ("macro", "expected"), [("OurMacro", ["E3002"]), ("AWS::LanguageExtensions", ["E3002", "E1020"])]
)
def test_a_name_that_a_macro_may_add_is_not_missing(macro: str, expected: list[str], tmp_path: Path) -> None:
    text = f"Transform: {macro}\nResources: {{A: {{Type: AWS::SQS::Queue, Properties: {{Foo: 1, QueueName: !Ref B}}}}}}"

    assert sorted(codes(found_in(text, tmp_path))) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("Resources: {A: {Type: AWS::SNS::Topic, DependOn: B}}", "E3001", "Resources.A.DependOn"),
        ("Resources: {A: {Properties: {}}, B: {Type: AWS::SNS::Topic}}", "E3001", "Resources.A.Type"),
        ("Resources: {A: {Type: AWS::SNS::Topic}}\nParameter: {}", "E1001", "Parameter"),
        ("Resources: {A: {Type: AWS::SNS::Topic, Condition: B}}", "E3015", "Resources.A.Condition"),
        ("Resources: {A: {Type: AWS::SNS::Topic, DependsOn: B}}", "E3005", "Resources.A.DependsOn"),
    ],
)
def test_the_form_of_a_template_is_judged(text: str, code: str, place: str, tmp_path: Path) -> None:
    (finding,) = [each for each in found_in(text, tmp_path) if each.severity == "error"]

    assert (finding.code, finding.path.rpartition("#")[2]) == (code, place)


def test_a_description_of_a_resource_is_taken(tmp_path: Path) -> None:
    assert codes(found_in("Resources: {A: {Type: AWS::SNS::Topic, Description: alarms}}", tmp_path)) == []


def test_rules_of_the_folder_do_not_run_and_its_accepted_codes_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "Rule.py").write_text("raise SystemExit('run')")
    (tmp_path / ".cfnlintrc").write_text("append_rules: [mine]\nignore_checks: [E3002]\n")
    monkeypatch.chdir(tmp_path)

    assert codes(found_in("Resources: {A: {Type: AWS::SQS::Queue, Properties: {Foo: 1}}}", tmp_path)) == []


def test_what_cfn_lint_fails_on_is_not_checked(tmp_path: Path) -> None:
    found = found_in("Parameters: [a]\nResources: {A: {Type: AWS::SQS::Queue, Properties: {Foo: 1}}}", tmp_path)

    assert "E3002" in codes(found)
    (unread,) = [each for each in found if each.severity == "not-checked"]
    assert unread.code == "HF022"
    assert unread.cause.startswith("cfn-lint failed (Unknown exception while processing rule ")


def test_the_type_of_another_region_is_judged_in_one_that_has_it(tmp_path: Path) -> None:
    text = """
Resources:
  Scheduler:
    Type: AWS::SageMaker::ClusterSchedulerConfig
    Properties: {ClusterArn: shared, Name: a, SchedulerConfig: {FairShare: Enabled}}
"""

    assert codes(found_in(text, tmp_path)) == ["E3031"]
    assert codes(found_in(text, tmp_path, region="us-gov-west-1")) == ["HF033"]


def test_a_code_that_is_left_out_is_one_of_cfn_lint() -> None:
    assert [code for code in LEFT_OUT if linted_rule(code) is None] == []


def test_values_of_the_cdk_before_its_lookups_are_no_mistakes(tmp_path: Path) -> None:
    group = """
Resources:
  Group:
    Type: AWS::EC2::SecurityGroup
    Properties:
      GroupDescription: nodes
      VpcId: {vpc}
  Endpoint:
    Type: AWS::EC2::VPCEndpoint
    Properties:
      ServiceName: com.amazonaws.us-west-2.s3
      VpcId: {vpc}
      SubnetIds: [{subnet}]
"""
    dummies = group.format(vpc="vpc-12345", subnet="p-12345")

    assert [code for code in codes(found_in(dummies, tmp_path)) if code.startswith("E")] == []
    assert "E1151" in codes(found_in(group.format(vpc="vpc-1234", subnet="p-12345"), tmp_path))
