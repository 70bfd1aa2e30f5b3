from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from holdfast_constructs.cdk import url_suffix


class EncryptionKey(Construct):
    """
    Symmetric KMS key, rotated yearly, usable by CloudWatch Logs of this account and region.

    Other services use it on behalf of their callers, or through a grant of a construct.
    """

    key: kms.IKey

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """Define a key. ``removal_policy`` default: RETAIN_ON_UPDATE_OR_DELETE; data of a deleted key is lost."""
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        key = kms.Key(
            self, "Resource", description="HyperPod cluster", enable_key_rotation=True, removal_policy=removal_policy
        )
        key.add_to_resource_policy(
            # CloudWatch Logs user guide, "Encrypt log data in CloudWatch Logs using AWS KMS"
            iam.PolicyStatement(
                sid="CloudWatchLogs",
                principals=[iam.ServicePrincipal(f"logs.{stack.region}.{url_suffix(self)}")],
                actions=["kms:Decrypt*", "kms:Describe*", "kms:Encrypt*", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
                resources=["*"],  # in a key's policy: this key
                conditions={
                    "ArnLike": {
                        "kms:EncryptionContext:aws:logs:arn": (
                            f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:*"
                        )
                    }
                },
            )
        )
        self.key = key
