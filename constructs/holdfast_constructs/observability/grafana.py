"""Amazon Managed Grafana: dashboards over Prometheus and CloudWatch."""

from typing import Literal

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_grafana as grafana
from aws_cdk import aws_iam as iam
from constructs import Construct

from holdfast_constructs.observability.prometheus import PrometheusWorkspace

CLOUDWATCH_ACTIONS = [
    "cloudwatch:DescribeAlarmsForMetric",
    "cloudwatch:GetMetricData",
    "cloudwatch:ListMetrics",
]


class GrafanaWorkspace(Construct):
    """Workspace whose role may only read metrics."""

    role: iam.IRole
    workspace_name: str
    workspace_arn: str
    endpoint: str
    """Host name of the workspace, without ``https://``."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        prometheus: PrometheusWorkspace,
        authentication: Literal["AWS_SSO", "SAML"] = "AWS_SSO",
    ) -> None:
        """
        Define a workspace. Users are assigned in IAM Identity Center, a SAML provider's metadata in the console.

        Args:
            name: In the console.
            prometheus: Workspace that it may query.
            authentication: Default: "AWS_SSO", IAM Identity Center, which must be enabled in the account's
                organization.
        """
        super().__init__(scope, construct_id)
        account = {"StringEquals": {"aws:SourceAccount": Stack.of(self).account}}
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("grafana.amazonaws.com", conditions=account),
            description="Grafana reads metrics",
        )
        prometheus.grant_query(self.role)
        alarms = Stack.of(self).format_arn(
            service="cloudwatch", resource="alarm", resource_name="*", arn_format=ArnFormat.COLON_RESOURCE_NAME
        )
        for actions, resource in (
            # These actions know no resources.
            ([*CLOUDWATCH_ACTIONS, "aps:ListWorkspaces"], "*"),
            (["cloudwatch:DescribeAlarms"], alarms),
            (["aps:DescribeWorkspace"], prometheus.workspace_arn),
        ):
            self.role.add_to_principal_policy(iam.PolicyStatement(actions=actions, resources=[resource]))
        workspace = grafana.CfnWorkspace(
            self,
            "Resource",
            name=name,
            account_access_type="CURRENT_ACCOUNT",
            authentication_providers=[authentication],
            # The role above; with SERVICE_MANAGED, Grafana makes one in the console only.
            permission_type="CUSTOMER_MANAGED",
            role_arn=self.role.role_arn,
            data_sources=["CLOUDWATCH", "PROMETHEUS"],
        )
        self.workspace_name = name
        self.workspace_arn = Stack.of(self).format_arn(
            service="grafana", resource="/workspaces", resource_name=workspace.ref
        )
        self.endpoint = workspace.attr_endpoint
