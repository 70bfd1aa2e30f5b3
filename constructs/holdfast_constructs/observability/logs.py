"""Log groups: their keys, and the one that HyperPod makes by itself."""

from collections.abc import Mapping

from aws_cdk import Arn, ArnComponents, ArnFormat, Fn, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import custom_resources as cr
from constructs import Construct, IConstruct

from holdfast_constructs.cdk import has_token, url_suffix
from holdfast_constructs.observability.metrics import NAMESPACE

RETENTION_DAYS = 90
EXISTS_ALREADY = "ResourceAlreadyExistsException"


def log_group_arn(scope: IConstruct, name: str) -> str:
    """The ARN without the ``:*`` that CloudFormation's attribute ends with."""
    parts = ArnComponents(
        service="logs", resource="log-group", resource_name=name, arn_format=ArnFormat.COLON_RESOURCE_NAME
    )
    return Arn.format(parts, Stack.of(scope))


def let_logs_use(key: kms.IKey, scope: IConstruct, name: str) -> None:
    """Tell ``key`` to serve CloudWatch Logs for the log groups of this name, in which ``*`` may stand for a part."""
    stack = Stack.of(scope)
    key.add_to_resource_policy(
        iam.PolicyStatement(
            actions=["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
            principals=[iam.ServicePrincipal(f"logs.{stack.region}.{url_suffix(scope)}")],
            resources=["*"],
            conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": log_group_arn(scope, name)}},
        )
    )


def log_group(
    scope: Construct,
    construct_id: str,
    *,
    name: str,
    retention_days: int,
    encryption_key: kms.IKey | None,
    removal_policy: RemovalPolicy,
) -> logs.LogGroup:
    """A log group whose key serves it, and whose retention is a number, as in the service's own words."""
    if encryption_key is not None:
        let_logs_use(encryption_key, scope, name)
    group = logs.LogGroup(
        scope, construct_id, log_group_name=name, encryption_key=encryption_key, removal_policy=removal_policy
    )
    resource = group.node.default_child
    assert isinstance(resource, logs.CfnLogGroup)
    resource.retention_in_days = retention_days
    return group


class NodeLogGroup(Construct):
    """
    The log group ``/aws/sagemaker/Clusters/<name>/<id>``: lifecycle scripts, health agent, deep health checks.

    Its name ends with an id that CreateCluster makes up, so nothing can be there before the cluster; and the first node
    that writes makes the group, so CloudFormation cannot make it after the cluster either. This makes it when it is
    absent and keeps it when it is not, as every node does, and sets what HyperPod leaves open: retention and key.
    The group is never deleted.
    """

    log_group: logs.ILogGroup

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        cluster_arn: str,
        retention_days: int = RETENTION_DAYS,
        encryption_key: kms.IKey | None = None,
    ) -> None:
        """
        Look after the group.

        Args:
            cluster_name: Part of the group's name.
            cluster_arn: The id is its last part.
            retention_days: Default: 90. HyperPod alone keeps logs for ever.
            encryption_key: Default: CloudWatch Logs' own encryption. Only lines written afterwards are encrypted with
                the key.
        """
        super().__init__(scope, construct_id)
        cluster_id = Fn.select(1, Fn.split("/", cluster_arn)) if has_token(cluster_arn) else cluster_arn[-12:]
        name = f"/aws/sagemaker/Clusters/{cluster_name}/{cluster_id}"
        self._arn, self._address = log_group_arn(self, name), self.node.addr
        group = {"logGroupName": name}
        made = self._call("Made", "CreateLogGroup", group, ignore=EXISTS_ALREADY)
        kept = self._call("Retention", "PutRetentionPolicy", {**group, "retentionInDays": retention_days})
        kept.node.add_dependency(made)
        if encryption_key is not None:
            # Not the id: the cluster may use this key too, which then could not wait for the cluster.
            let_logs_use(encryption_key, self, f"/aws/sagemaker/Clusters/{cluster_name}/*")
            encrypted = self._call("Key", "AssociateKmsKey", {**group, "kmsKeyId": encryption_key.key_arn})
            encrypted.node.add_dependency(made)
        self.log_group = logs.LogGroup.from_log_group_name(self, "Group", name)
        found = logs.MetricFilter(
            self,
            "Detections",
            log_group=self.log_group,
            filter_pattern=logs.FilterPattern.literal("HealthMonitoringAgentDetectionEvent"),
            metric_namespace=f"{NAMESPACE}/{cluster_name}",
            metric_name="HealthDetections",
            metric_value="1",
        )
        found.node.add_dependency(made)

    def _call(
        self, name: str, operation: str, parameters: Mapping[str, object], *, ignore: str | None = None
    ) -> cr.AwsCustomResource:
        call = cr.AwsSdkCall(
            service="CloudWatchLogs",
            action=operation,
            parameters=dict(parameters),
            physical_resource_id=cr.PhysicalResourceId.of(f"{name}-{self._address}"),
            ignore_error_codes_matching=ignore,
        )
        return cr.AwsCustomResource(
            self,
            name,
            on_update=call,  # also what runs on creation
            install_latest_aws_sdk=False,
            policy=cr.AwsCustomResourcePolicy.from_statements(
                [iam.PolicyStatement(actions=[f"logs:{operation}"], resources=[self._arn, f"{self._arn}:*"])]
            ),
        )
