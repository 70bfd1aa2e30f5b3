"""One template per environment. What is meant is asserted in tests/unit; here drift is noticed."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from deployed import identities, scrub
from nagging import accepted, accepted_by, nagged
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension
from unlinted import unlinted

from holdfast.config import load
from holdfast.updates import environment_of, guard
from holdfast.validation.from_template import check_template
from holdfast_constructs.observability import OWN_EVENTS
from holdfast_stacks import HyperPodStack

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = sorted(path.stem for path in (ROOT / "environments").glob("*.yaml"))
DEPLOYED = json.loads((ROOT / "tests" / "cases" / "deployed" / "before-deploying.json").read_text())["environments"]

STATEFUL = {
    "AWS::FSx::FileSystem": {"LustreF8935BA0", "Home61B75E36"},
    "AWS::SageMaker::Cluster": {"ClusterEB0386A7"},
    "AWS::EKS::Cluster": {"Eks3DB0AF90"},
    "AWS::EC2::VPC": {"Network6E62CE96"},
    "AWS::KMS::Key": {"KeyE447D366"},
    "AWS::RDS::DBInstance": {"Accounting8979588E"},
    "AWS::S3::Bucket": {"Data2D4B752F", "LifecycleF93AE699"},
}
"""A contract: another id replaces the resource, and with it what it holds."""


@dataclass(frozen=True, kw_only=True)
class Synthesised:
    """A template, and what cdk-nag objects to: each as rule and construct path."""

    template: dict[str, Any]
    objections: list[tuple[str, str]]


@pytest.fixture(scope="module")
def synthesised(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Synthesised]:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    found = {}
    for name in ENVIRONMENTS:
        environment = load(ROOT / "environments" / f"{name}.yaml")
        app = cdk.App(context=context, analytics_reporting=False, outdir=str(tmp_path_factory.mktemp(name)))
        HyperPodStack(app, environment.stack_name, environment=environment)
        with unlinted():  # a test below does it
            assembly, objections = nagged(app)
        template = json.loads((assembly / f"{environment.stack_name}.template.json").read_text())
        found[name] = Synthesised(template=template, objections=objections)
    return found


@pytest.fixture(scope="module")
def templates(synthesised: dict[str, Synthesised]) -> dict[str, dict[str, Any]]:
    return {name: each.template for name, each in synthesised.items()}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_template_is_what_was_reviewed(
    name: str, templates: dict[str, dict[str, Any]], snapshot: SnapshotAssertion
) -> None:
    assert scrub(templates[name]) == snapshot.use_extension(JSONSnapshotExtension)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_objection_of_cdk_nag_is_accepted_with_a_reason(name: str, synthesised: dict[str, Synthesised]) -> None:
    assert [objection for objection in synthesised[name].objections if accepted_by(*objection) is None] == []


def test_every_accepted_objection_is_one_that_is_made(synthesised: dict[str, Synthesised]) -> None:
    used = {accepted_by(*objection) for each in synthesised.values() for objection in each.objections}

    assert [why for _, _, why in accepted() if why not in used] == []


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_stateful_resources_keep_their_logical_ids(name: str, templates: dict[str, dict[str, Any]]) -> None:
    resources = templates[name]["Resources"]

    found = {kind: {key for key, item in resources.items() if item["Type"] == kind} for kind in STATEFUL}
    assert {kind: ids - STATEFUL[kind] for kind, ids in found.items() if ids - STATEFUL[kind]} == {}
    assert {"Events948F067E"} <= {key for key, item in resources.items() if item["Type"] == "AWS::Logs::LogGroup"}


MOVED = {"full": ("us-west-2", "us-east-1")}
"""It could not be deployed where it was: AWS::SageMaker::ClusterSchedulerConfig is not in us-west-2."""

GONE = (
    "ObservabilityAlarmsGpuIdle",
    "ObservabilityAlarmsNoSpareLeft",
    *(f"ObservabilityMetrics{metric.name}" for metric in OWN_EVENTS),
    "PrometheusRules",
)
"""What ids begin with that an update may take away: things that wait for signals that nothing sends, without data."""


def deployed_before(name: str) -> dict[str, Any]:
    text = json.dumps(DEPLOYED[name])
    there, here = MOVED.get(name, ("", ""))
    found: dict[str, Any] = json.loads(text.replace(there, here) if there else text)
    return found


@pytest.mark.parametrize("name", sorted(DEPLOYED))
def test_an_update_of_what_was_deployed_replaces_nothing(name: str, templates: dict[str, dict[str, Any]]) -> None:
    before, now = deployed_before(name)["resources"], identities(templates[name])

    assert {key for key in before.keys() - now.keys() if not key.startswith(GONE)} == set()
    assert {key: now[key] for key in before if key in now and now[key] != before[key]} == {}


@pytest.mark.parametrize("name", sorted(DEPLOYED))
def test_the_guard_allows_the_update_of_what_was_deployed(name: str) -> None:
    environment = load(ROOT / "environments" / f"{name}.yaml")
    before = environment_of({"Metadata": deployed_before(name)["metadata"]})

    assert [str(problem) for problem in guard(environment, before)] == []


def test_every_stateful_resource_is_in_some_environment(templates: dict[str, dict[str, Any]]) -> None:
    there = {key for template in templates.values() for key in template["Resources"]}

    assert {name for ids in STATEFUL.values() for name in ids} - there == set()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_outputs_are_the_ones_that_others_read(name: str, templates: dict[str, dict[str, Any]]) -> None:
    always = {"ClusterArn", "ClusterName", "DataBucketName", "EventsLogGroupName", "LifecycleBucketName", "VpcId"}
    if name == "existing-slurm":  # its scripts are somebody else's
        always -= {"LifecycleBucketName"}
    sometimes = {
        "FileSystemId",
        "HomeFileSystemId",
        "KubernetesAdmins",
        "MlflowTrackingUri",
        "SessionDocumentName",
        "TensorBoardLogDir",
        "TrainingImageUri",
    }

    assert always <= set(templates[name]["Outputs"]) <= always | sometimes


def makes_a_control_plane(name: str) -> bool:
    eks = load(ROOT / f"environments/{name}.yaml").eks
    return eks is not None and eks.existing is None


@pytest.mark.parametrize("name", list(filter(makes_a_control_plane, ENVIRONMENTS)))
def test_every_environment_on_eks_lets_somebody_administer_kubernetes_and_says_whom(
    name: str, templates: dict[str, dict[str, Any]]
) -> None:
    template = templates[name]
    entries = [item for item in template["Resources"].values() if item["Type"] == "AWS::EKS::AccessEntry"]
    named = [item["Properties"] for item in entries if isinstance(item["Properties"]["PrincipalArn"], str)]

    (admin,) = named
    assert admin["AccessPolicies"][0]["AccessScope"] == {"Type": "cluster"}
    assert "AmazonEKSClusterAdminPolicy" in json.dumps(admin["AccessPolicies"][0]["PolicyArn"])
    assert template["Outputs"]["KubernetesAdmins"]["Value"] == admin["PrincipalArn"]


def test_only_the_embedded_environment_names_stand_ins(templates: dict[str, dict[str, Any]]) -> None:
    tags = {name: templates[name]["Resources"]["ClusterEB0386A7"]["Properties"]["Tags"] for name in ENVIRONMENTS}

    assert {tag["Key"]: tag["Value"] for tag in tags["local"]} == {
        "holdfast:environment": "local",
        "holdfast:stand-in:efa": "ethernet",
        "holdfast:stand-in:gpu": "cpu",
        "holdfast:stand-in:image": "python-environment",
        "holdfast:stand-in:lustre": "directory",
    }
    assert [tag["Key"] for tag in tags["slurm-p5"]] == ["holdfast:environment"]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_check_of_the_template_reports_no_code_of_cfn_lint(
    name: str, templates: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "a.template.json").write_text(json.dumps(templates[name]))
    region = load(ROOT / "environments" / f"{name}.yaml").region

    found = check_template(tmp_path / "a.template.json", region=region).findings

    assert [str(each) for each in found if not each.code.startswith("HF") or "cfn-lint failed" in each.cause] == []
