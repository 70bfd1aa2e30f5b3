"""Amazon Managed Service for Prometheus, with alert rules."""

from pathlib import Path

from aws_cdk import CfnTag, RemovalPolicy, Stack
from aws_cdk import aws_aps as aps
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from holdfast_constructs.observability.logs import RETENTION_DAYS, log_group
from holdfast_constructs.observability.topic import AlertTopic

RULES = Path(__file__).with_name("prometheus_rules.yaml")
QUERY_ACTIONS = ["aps:GetLabels", "aps:GetMetricMetadata", "aps:GetSeries", "aps:QueryMetrics"]

ALERT_MANAGER = """\
alertmanager_config: |
  route:
    receiver: holdfast
    group_by: [alertname, instance]
    group_wait: 30s
    repeat_interval: 12h
  receivers:
    - name: holdfast
      sns_configs:
        - topic_arn: {topic_arn}
          subject: Holdfast alert
          sigv4:
            region: {region}
"""


class PrometheusWorkspace(Construct):
    """Workspace with a log, the alert rules of ``prometheus_rules.yaml``, and an alert manager for a topic."""

    workspace_arn: str
    remote_write_url: str
    """Where exporters and collectors write to, signed for service ``aps``."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        alias: str,
        alerts: AlertTopic | None = None,
        rules: bool = True,
        encryption_key: kms.IKey | None = None,
        retention_days: int = RETENTION_DAYS,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """
        Define a workspace.

        Args:
            alias: Name in the console.
            alerts: Topic. Default: alerts are only shown.
            rules: Create the alert rules, which need HyperPod's exporters or the health agent. Default: True.
            encryption_key: Of metrics and log. It cannot be changed later. Default: the services' own encryption.
            retention_days: Of the log of failed rules and alerts. Default: 90. Metrics: 150, the service's default.
            removal_policy: Default: RETAIN_ON_UPDATE_OR_DELETE.
        """
        super().__init__(scope, construct_id)
        log = log_group(
            self,
            "Log",
            name=f"/aws/vendedlogs/prometheus/{alias}",
            retention_days=retention_days,
            encryption_key=encryption_key,
            removal_policy=removal_policy,
        )
        stack = Stack.of(self)
        manager = (
            None if alerts is None else ALERT_MANAGER.format(topic_arn=alerts.topic.topic_arn, region=stack.region)
        )
        workspace = aps.CfnWorkspace(
            self,
            "Resource",
            alias=alias,
            alert_manager_definition=manager,
            kms_key_arn=None if encryption_key is None else encryption_key.key_arn,
            logging_configuration=aps.CfnWorkspace.LoggingConfigurationProperty(log_group_arn=log.log_group_arn),
            # AmazonSageMakerHyperPodObservabilityAdminAccess, which sets HyperPod's add-on up, is limited to this tag.
            tags=[CfnTag(key="SageMaker", value="true")],
        )
        workspace.apply_removal_policy(removal_policy)
        self.workspace_arn = workspace.attr_arn
        self.remote_write_url = f"{workspace.attr_prometheus_endpoint}api/v1/remote_write"
        if rules:
            aps.CfnRuleGroupsNamespace(
                self, "Rules", name="holdfast", workspace=workspace.attr_arn, data=RULES.read_text()
            ).apply_removal_policy(removal_policy)
        if alerts is not None:
            alerts.let_publish(
                "aps.amazonaws.com",
                actions=["sns:GetTopicAttributes", "sns:Publish"],
                conditions={
                    "ArnEquals": {"aws:SourceArn": workspace.attr_arn},
                    "StringEquals": {"aws:SourceAccount": stack.account},
                },
            )

    def grant_remote_write(self, grantee: iam.IGrantable) -> iam.Grant:
        return self._grant(grantee, ["aps:RemoteWrite"])

    def grant_query(self, grantee: iam.IGrantable) -> iam.Grant:
        return self._grant(grantee, QUERY_ACTIONS)

    def _grant(self, grantee: iam.IGrantable, actions: list[str]) -> iam.Grant:
        return iam.Grant.add_to_principal(grantee=grantee, actions=actions, resource_arns=[self.workspace_arn])
