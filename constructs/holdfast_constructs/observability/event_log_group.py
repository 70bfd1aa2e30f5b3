from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from holdfast_common import events_log_group


class EventLogGroup(Construct):
    """CloudWatch log group ``/holdfast/<cluster>/events``: JSON lines, a stream per source or instance."""

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
            retention: Default: THREE_MONTHS.
            encryption_key: Its policy must allow CloudWatch Logs, as that of ``EncryptionKey``. Default: CloudWatch's
                own.
            removal_policy: Default: RETAIN_ON_UPDATE_OR_DELETE.
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
