"""The log group that carries a cluster's events."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from holdfast_common import events_log_group


class EventLogGroup(Construct):
    """The CloudWatch log group ``/holdfast/<cluster>/events``: JSON lines, a stream per source or instance."""

    log_group: logs.ILogGroup

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        retention: logs.RetentionDays = logs.RetentionDays.THREE_MONTHS,
        encryption_key: kms.IKey | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """
        Define a log group.

        Args:
            cluster_name: The cluster whose events it carries.
            retention: Default: THREE_MONTHS.
            encryption_key: Its policy must let CloudWatch Logs use it, as that of ``EncryptionKey`` does. Default: a
                key of CloudWatch Logs.
            removal_policy: Default: RETAIN_ON_UPDATE_OR_DELETE, the log outlives its stack.
        """
        super().__init__(scope, construct_id)
        self.log_group = logs.LogGroup(
            self,
            "Resource",
            log_group_name=events_log_group(cluster_name),
            retention=retention,
            encryption_key=encryption_key,
            removal_policy=removal_policy,
        )
