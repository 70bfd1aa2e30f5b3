"""Prometheus, Grafana, MLflow and TensorBoard: what they may do, and who may use them."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import assertions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from holdfast_constructs import (
    AlertTopic,
    DataBucket,
    GrafanaWorkspace,
    HyperPodCluster,
    MlflowApp,
    ObservabilityExtension,
    PrometheusWorkspace,
    TensorBoardLogs,
)
from holdfast_constructs.observability import RULES


@pytest.fixture(scope="module")
def template() -> assertions.Template:
    stack = cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))
    key = kms.Key(stack, "Key")
    bucket = DataBucket(stack, "Data").bucket
    job = iam.Role(stack, "Job", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    alerts = AlertTopic(stack, "Topic", encryption_key=key)
    prometheus = PrometheusWorkspace(stack, "Prometheus", alias="demo", alerts=alerts, encryption_key=key)
    prometheus.grant_remote_write(job)
    grafana = GrafanaWorkspace(stack, "Grafana", name="demo", prometheus=prometheus)
    mlflow = MlflowApp(stack, "Mlflow", name="demo", bucket=bucket)
    mlflow.grant_track(job)
    tensorboard = TensorBoardLogs(bucket=bucket)
    tensorboard.grant_write(job)
    cdk.CfnOutput(stack, "Endpoint", value=grafana.endpoint)
    for name, value in {**mlflow.environment, **tensorboard.environment}.items():
        cdk.CfnOutput(stack, name.replace("_", ""), value=value)
    return assertions.Template.from_stack(stack)


def only(template: assertions.Template, kind: str) -> dict[str, Any]:
    (resource,) = template.find_resources(kind).values()
    return resource["Properties"]


def allowed(template: assertions.Template, role: str) -> dict[str, str]:
    """Resource by action, for the role whose id begins so."""
    statements = [
        statement
        for name, policy in template.find_resources("AWS::IAM::Policy").items()
        if name.startswith(role)
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    return {
        action: json.dumps(item["Resource"])
        for item in statements
        for action in ([item["Action"]] if isinstance(item["Action"], str) else item["Action"])
    }


def test_a_workspace_is_logged_encrypted_and_kept(template: assertions.Template) -> None:
    (resource,) = template.find_resources("AWS::APS::Workspace").values()
    properties = resource["Properties"]

    assert resource["DeletionPolicy"] == "RetainExceptOnCreate"
    assert "KmsKeyArn" in properties
    assert "Fn::GetAtt" in properties["LoggingConfiguration"]["LogGroupArn"]
    template.has_resource_properties("AWS::Logs::LogGroup", {"LogGroupName": "/aws/vendedlogs/prometheus/demo"})


def test_the_workspace_alone_may_publish_its_alerts(template: assertions.Template) -> None:
    manager = only(template, "AWS::APS::Workspace")["AlertManagerDefinition"]["Fn::Join"][1]
    text = "".join(part if isinstance(part, str) else "arn:topic" for part in manager)
    config = yaml.safe_load(yaml.safe_load(text)["alertmanager_config"])
    statements = only(template, "AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    (allow,) = (item for item in statements if item["Principal"] == {"Service": "aps.amazonaws.com"})

    assert config["receivers"][0]["sns_configs"][0]["topic_arn"] == "arn:topic"
    assert config["receivers"][0]["sns_configs"][0]["sigv4"] == {"region": "us-west-2"}
    assert allow["Action"] == ["sns:GetTopicAttributes", "sns:Publish"]
    assert "Arn" in json.dumps(allow["Condition"]["ArnEquals"]["aws:SourceArn"])


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def test_the_rules_go_to_the_workspace_and_cover_what_fails(template: assertions.Template) -> None:
    names = {rule["alert"] for rule in rules()}

    assert yaml.safe_load(only(template, "AWS::APS::RuleGroupsNamespace")["Data"])["groups"]
    assert {
        "GpuTemperatureCritical",
        "GpuDoubleBitError",
        "GpuXid",
        "NvlinkErrors",
        "EfaReadErrors",
        "DiskAlmostFull",
        "LustreAlmostFull",
        "DetectorLost",
    } <= names


def test_every_rule_says_how_bad_it_is_and_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["action"].endswith(".")
        assert re.search(r"(DCGM_FI|node_amazonefa|node_filesystem|holdfast)_", rule["expr"])


RULE_TESTS = """
rule_files: [RULES]
evaluation_interval: 30s
tests:
  - interval: 1m
    input_series:
      - {series: 'DCGM_FI_DEV_XID_ERRORS{instance="new", gpu="0"}', values: '0x9 79x20'}
      - {series: 'DCGM_FI_DEV_XID_ERRORS{instance="old", gpu="0"}', values: '79x40'}
      - {series: 'DCGM_FI_DEV_XID_ERRORS{instance="cleanup", gpu="0"}', values: '0x9 45x20'}
      - {series: 'node_filesystem_avail_bytes{instance="a", fstype="lustre", mountpoint="/fsx"}', values: '10x40'}
      - {series: 'node_filesystem_size_bytes{instance="a", fstype="lustre", mountpoint="/fsx"}', values: '100x40'}
      - {series: 'node_filesystem_avail_bytes{instance="b", fstype="lustre", mountpoint="/fsx"}', values: '10x40'}
      - {series: 'node_filesystem_size_bytes{instance="b", fstype="lustre", mountpoint="/fsx"}', values: '100x40'}
    promql_expr_test:
      - {expr: 'count(ALERTS{alertname="GpuXid"})', eval_time: 14m, exp_samples: [{value: 1}]}
      - {expr: 'count(ALERTS{alertname="GpuXid", instance="new"})', eval_time: 14m, exp_samples: [{value: 1}]}
      - {expr: 'count(ALERTS{alertname="GpuXid"})', eval_time: 30m, exp_samples: []}
      - {expr: 'count(ALERTS{alertname="LustreAlmostFull"})', eval_time: 14m, exp_samples: [{value: 1}]}
      - {expr: 'count(ALERTS{alertname="DiskAlmostFull"})', eval_time: 14m, exp_samples: []}
"""


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool: apt-get install prometheus")
def test_the_rules_fire_on_what_is_new_and_once_per_file_system(tmp_path: Path) -> None:
    path = tmp_path / "tests.yaml"
    path.write_text(RULE_TESTS.replace("RULES", str(RULES)))
    result = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stdout + result.stderr


def test_grafana_reads_metrics_and_nothing_else(template: assertions.Template) -> None:
    actions = allowed(template, "Grafana")
    anywhere = {action for action, resource in actions.items() if resource == '"*"'}

    assert {action.split(":")[1][:3] for action in actions} <= {"Des", "Get", "Lis", "Que"}
    assert anywhere == {
        "aps:ListWorkspaces",
        "cloudwatch:DescribeAlarmsForMetric",
        "cloudwatch:GetMetricData",
        "cloudwatch:ListMetrics",
    }
    workspace = only(template, "AWS::Grafana::Workspace")
    assert (workspace["PermissionType"], workspace["AuthenticationProviders"]) == ("CUSTOMER_MANAGED", ["AWS_SSO"])


def test_grafana_of_another_account_cannot_use_the_role(template: assertions.Template) -> None:
    (role,) = (item for name, item in template.find_resources("AWS::IAM::Role").items() if name.startswith("Grafana"))
    (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]

    assert trust["Principal"] == {"Service": "grafana.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": "111122223333"}}


def test_mlflow_touches_its_prefix_only(template: assertions.Template) -> None:
    (policy,) = (
        item["Properties"]["PolicyDocument"]["Statement"]
        for name, item in template.find_resources("AWS::IAM::Policy").items()
        if name.startswith("Mlflow")
    )

    assert '"/mlflow/*"' in json.dumps(policy)
    assert only(template, "AWS::SageMaker::MlflowApp")["ArtifactStoreUri"]["Fn::Join"][1][-1] == "/mlflow"


def test_a_job_may_track_runs_write_logs_and_send_metrics(template: assertions.Template) -> None:
    actions = allowed(template, "Job")

    assert {"sagemaker:CallMlflowAppApi", "sagemaker:DescribeMlflowApp", "aps:RemoteWrite", "s3:PutObject"} <= set(
        actions
    )
    assert not [action for action, resource in actions.items() if resource == '"*"']
    assert "/tensorboard" in json.dumps(template.find_outputs("TENSORBOARDLOGDIR"))


def test_cfn_lint_finds_nothing(template: assertions.Template) -> None:
    from cfnlint.api import ManualArgs, lint

    findings = lint(json.dumps(template.to_json()), config=ManualArgs(regions=["us-west-2"]))

    assert [str(finding) for finding in findings] == []


@pytest.mark.parametrize(("workspace", "configuration"), [(True, "remote_write"), (False, "{}")])
def test_the_extension_writes_to_the_workspace_or_to_cloudwatch(workspace: bool, configuration: str) -> None:
    stack = cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))
    arn = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghij12"
    ObservabilityExtension(
        stack,
        "Extension",
        cluster=HyperPodCluster.from_cluster_arn(stack, "Cluster", cluster_arn=arn),
        prometheus=PrometheusWorkspace(stack, "Prometheus", alias="demo") if workspace else None,
    )
    properties = only(assertions.Template.from_stack(stack), "AWS::SageMaker::Extension")

    assert properties["ClusterArn"] == arn
    assert properties["ExtensionName"] == "sagemaker-observability"
    assert configuration in json.dumps(properties["ConfigurationValues"])
