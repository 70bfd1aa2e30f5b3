from typing import Protocol

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from holdfast.catalog import KEPT_VERSIONS_DAYS


class IDataBucket(Protocol):
    """Bucket for datasets and checkpoints, owned or imported."""

    bucket: s3.IBucket


class DataBucket(Construct):
    """Encrypted, private bucket, TLS only."""

    bucket: s3.IBucket

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        encryption_key: kms.IKey | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """
        Define a bucket.

        Args:
            encryption_key: Default: a key of S3.
            removal_policy: Default: RETAIN_ON_UPDATE_OR_DELETE, with a week of old versions. DESTROY: deleted with all
                objects.
        """
        super().__init__(scope, construct_id)
        kept = removal_policy is not RemovalPolicy.DESTROY
        self.bucket = s3.Bucket(
            self,
            "Resource",
            encryption=s3.BucketEncryption.S3_MANAGED if encryption_key is None else s3.BucketEncryption.KMS,
            encryption_key=encryption_key,
            bucket_key_enabled=None if encryption_key is None else True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            versioned=kept,
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=Duration.days(KEPT_VERSIONS_DAYS),
                    noncurrent_version_expiration=Duration.days(KEPT_VERSIONS_DAYS) if kept else None,
                )
            ],
            removal_policy=removal_policy,
            auto_delete_objects=not kept,
        )

    @staticmethod
    def from_bucket_name(
        scope: Construct,
        construct_id: str,
        *,
        bucket_name: str,
        encryption_key: kms.IKey | None = None,
        manage_bucket_policy: bool = False,
    ) -> IDataBucket:
        """
        Refer to an external bucket, in the stack's region.

        Args:
            encryption_key: Granted with the bucket. Default: a key of S3.
            manage_bucket_policy: Replace its policy: TLS only. Default: False.
        """
        imported = _Imported(scope, construct_id)
        imported.bucket = s3.Bucket.from_bucket_attributes(
            imported, "Bucket", bucket_name=bucket_name, encryption_key=encryption_key
        )
        if manage_bucket_policy:
            take_tls_only(imported, imported.bucket)
        return imported


class _Imported(Construct):
    bucket: s3.IBucket


def take_tls_only(scope: Construct, bucket: s3.IBucket) -> None:
    """Write the policy of an external bucket."""
    s3.BucketPolicy(scope, "Policy", bucket=bucket).document.add_statements(
        iam.PolicyStatement(
            sid="TlsOnly",
            effect=iam.Effect.DENY,
            principals=[iam.AnyPrincipal()],
            actions=["s3:*"],
            resources=[bucket.bucket_arn, bucket.arn_for_objects("*")],
            conditions={"Bool": {"aws:SecureTransport": "false"}},
        )
    )
