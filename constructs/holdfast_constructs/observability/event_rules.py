"""HyperPod's three kinds of events, to a topic and to a log group for metrics."""

from typing import Any

from aws_cdk import RemovalPolicy
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from constructs import Construct

from holdfast_constructs.cluster import IHyperPodCluster
from holdfast_constructs.observability.logs import RETENTION_DAYS, log_group, log_group_arn
from holdfast_constructs.observability.metrics import CLUSTER_EVENT, NODE_HEALTH, STATE_CHANGE

NOTED_LEVELS = ("Warn", "Error")
"""Of cluster events, which a cluster with continuous provisioning emits by the hundred."""


class ClusterEventRules(Construct):
    """
    EventBridge rules for one cluster, by its name, so they do not wait for it: failed creations are reported, too.
    """

    log_group: logs.ILogGroup
    """Each event as one line of JSON."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: IHyperPodCluster,
        topic: sns.ITopic,
        encryption_key: kms.IKey | None = None,
        retention_days: int = RETENTION_DAYS,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """
        Define the rules.

        Args:
            topic: Gets state changes, node health events, and cluster events of level Warn and Error; must allow
                EventBridge to publish, as an AlertTopic.
            encryption_key: Of the log group. Default: CloudWatch's own.
            retention_days: Default: 90.
            removal_policy: Of the log group. Default: RETAIN_ON_UPDATE_OR_DELETE.
        """
        super().__init__(scope, construct_id)
        name = f"/aws/events/holdfast/{cluster.cluster_name}"  # a prefix that EventBridge's console knows, too
        self.log_group = log_group(
            self,
            "Log",
            name=name,
            retention_days=retention_days,
            encryption_key=encryption_key,
            removal_policy=removal_policy,
        )
        write = self.log_group.grant_write(iam.ServicePrincipal("events.amazonaws.com"))
        by_name = {"ClusterName": [cluster.cluster_name]}
        in_details = {"EventDetails": by_name}
        self._rule("StateChange", STATE_CHANGE, by_name, topic.topic_arn)
        self._rule("NodeHealth", NODE_HEALTH, by_name, topic.topic_arn)
        noted = {"EventDetails": {**by_name, "EventLevel": list(NOTED_LEVELS)}}
        self._rule("ClusterEvent", CLUSTER_EVENT, noted, topic.topic_arn)
        kept = self._rule(
            "Archive",
            [STATE_CHANGE, NODE_HEALTH, CLUSTER_EVENT],
            {"$or": [by_name, in_details]},
            log_group_arn(self, name),
        )
        write.apply_before(kept)

    def _rule(self, name: str, kinds: str | list[str], detail: dict[str, Any], target_arn: str) -> events.CfnRule:
        """An L1: the L2's target for log groups adds a Lambda function to write a policy."""
        return events.CfnRule(
            self,
            name,
            description=f"HyperPod: {kinds if isinstance(kinds, str) else 'all events'}",
            event_pattern={
                "source": ["aws.sagemaker"],
                "detail-type": [kinds] if isinstance(kinds, str) else kinds,
                "detail": detail,
            },
            targets=[events.CfnRule.TargetProperty(arn=target_arn, id=name)],
        )
