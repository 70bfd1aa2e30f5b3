from collections.abc import Sequence

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from holdfast_constructs.cdk import url_suffix

GRANT_OPERATIONS = (
    "CreateGrant",
    "Decrypt",
    "DescribeKey",
    "GenerateDataKeyWithoutPlaintext",
    "ReEncryptFrom",
    "ReEncryptTo",
    "RetireGrant",
)


class AutoScalingRole(Construct):
    """
    Role without rights until ``allow``, because the cluster needs the role before its ARN exists.

    Source: SageMaker developer guide, "Create an IAM role for HyperPod autoscaling with Karpenter".
    """

    role: iam.IRole

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.role = iam.Role(
            self,
            "Resource",
            assumed_by=iam.ServicePrincipal("hyperpod.sagemaker.amazonaws.com"),
            description="Karpenter of HyperPod",
        )

    def allow(self, *, cluster_arn: str, keys: Sequence[kms.IKey]) -> None:
        """Allow changes of this cluster's nodes, and use of their volumes' keys."""
        statements = [
            iam.PolicyStatement(
                sid="ScaleTheCluster",
                actions=["sagemaker:BatchAddClusterNodes", "sagemaker:BatchDeleteClusterNodes"],
                resources=[cluster_arn],
            )
        ]
        # A policy of its own: in the role's, it would make the cluster wait for itself.
        self._policy = iam.Policy(self, "Policy", roles=[self.role], statements=statements)
        self.allow_keys(keys)

    def allow_keys(self, keys: Sequence[kms.IKey]) -> None:
        """Allow more keys of volumes; call ``allow`` first."""
        if keys:
            self._policy.add_statements(
                iam.PolicyStatement(
                    sid="EncryptVolumes",
                    actions=["kms:CreateGrant", "kms:DescribeKey"],
                    resources=[key.key_arn for key in keys],
                    conditions={
                        "StringLike": {"kms:ViaService": f"sagemaker.*.{url_suffix(self)}"},
                        "Bool": {"kms:GrantIsForAWSResource": "true"},
                        "ForAllValues:StringEquals": {"kms:GrantOperations": list(GRANT_OPERATIONS)},
                    },
                )
            )
