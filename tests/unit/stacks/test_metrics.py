"""With Managed Prometheus under Slurm the nodes know where their numbers go, and may send them there alone."""

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import assertions

from holdfast.config import load
from holdfast_stacks import HyperPodStack

ENVIRONMENTS = Path(__file__).parents[3] / "environments"


def resources(folder: Path, *, agent: bool) -> dict[str, Any]:
    described = yaml.safe_load((ENVIRONMENTS / "minimal.yaml").read_text())
    described["observability"] = {**described.get("observability", {}), "prometheus": True}
    described["health"] = {**described.get("health", {}), "enabled": agent}
    path = folder / "minimal.yaml"
    path.write_text(yaml.safe_dump(described))
    stack = HyperPodStack(cdk.App(), "Demo", environment=load(path), folder=ENVIRONMENTS)
    found: dict[str, Any] = assertions.Template.from_stack(stack).to_json()["Resources"]  # refuses circles
    return found


def of_type(found: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: one["Properties"] for name, one in found.items() if one["Type"] == kind}


def statements(found: dict[str, Any]) -> list[Any]:
    policies = of_type(found, "AWS::IAM::Policy").values()
    return [one for policy in policies for one in policy["PolicyDocument"]["Statement"]]


@pytest.fixture(scope="module")
def sending(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return resources(tmp_path_factory.mktemp("sending"), agent=True)


def test_the_role_of_the_nodes_may_send_to_this_workspace_alone(sending: dict[str, Any]) -> None:
    (workspace,) = of_type(sending, "AWS::APS::Workspace")
    (allowed,) = [one for one in statements(sending) if "aps:RemoteWrite" in str(one["Action"])]
    assert allowed == {
        "Action": "aps:RemoteWrite",
        "Effect": "Allow",
        "Resource": {"Fn::GetAtt": [workspace, "Arn"]},
    }


def test_the_bundle_says_where_and_the_rules_are_made(sending: dict[str, Any]) -> None:
    (workspace,) = of_type(sending, "AWS::APS::Workspace")
    deployed = str(of_type(sending, "Custom::CDKBucketDeployment"))
    assert f"'Fn::GetAtt': ['{workspace}', 'PrometheusEndpoint']" in deployed
    assert len(of_type(sending, "AWS::APS::RuleGroupsNamespace")) == 1


def test_without_an_agent_nobody_may_send_and_no_rule_waits_for_it(tmp_path: Path) -> None:
    found = resources(tmp_path, agent=False)
    assert len(of_type(found, "AWS::APS::Workspace")) == 1
    assert [one for one in statements(found) if "aps:" in str(one["Action"])] == []
    assert of_type(found, "AWS::APS::RuleGroupsNamespace") == {}
