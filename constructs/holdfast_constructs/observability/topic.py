from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct


class AlertTopic(Construct):
    """SNS topic, TLS only, for this account's alarms and EventBridge."""

    topic: sns.ITopic

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        emails: Sequence[str] = (),
        encryption_key: kms.IKey | None = None,
    ) -> None:
        """
        Define a topic.

        Args:
            emails: Each gets a message to confirm before alarms arrive.
            encryption_key: Default: no encryption at rest; messages name clusters, nodes and faults. A key of this app
                is extended for the publishers; the policy of an imported one must allow them, which ``alias/aws/sns``
                does not.
        """
        super().__init__(scope, construct_id)
        self.topic = sns.Topic(self, "Resource", master_key=encryption_key, enforce_ssl=True)
        self._arn, self._key = self.topic.topic_arn, encryption_key
        for email in emails:
            self.topic.add_subscription(subscriptions.EmailSubscription(email))
        self._account = {"StringEquals": {"aws:SourceAccount": Stack.of(self).account}}
        # EventBridge does not support conditions on topics and their keys (SNS guide, sns-key-management).
        self.let_publish("events.amazonaws.com")
        self.let_publish("cloudwatch.amazonaws.com", conditions=self._account)

    def let_publish(
        self, service: str, *, actions: Sequence[str] = ("sns:Publish",), conditions: Mapping[str, Any] | None = None
    ) -> None:
        """Allow a service, such as ``aps.amazonaws.com``, to publish, and to use the key."""
        publisher = iam.ServicePrincipal(service, conditions=conditions)
        statement = iam.PolicyStatement(actions=list(actions), principals=[publisher], resources=[self._arn])
        self.topic.add_to_resource_policy(statement)
        if self._key is not None:  # the policy of the key cannot name what depends on the key
            principal = iam.ServicePrincipal(service, conditions=self._account if conditions else None)
            self._key.grant(principal, "kms:Decrypt", "kms:GenerateDataKey*")
