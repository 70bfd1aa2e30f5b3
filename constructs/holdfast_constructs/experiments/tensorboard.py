"""
TensorBoard: a place for logs in S3, without a server.

SageMaker's TensorBoard needs a Studio domain, one application per user, paid by the hour. Logs in S3 work with it and
with any ``tensorboard --logdir s3://...``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3


@dataclass(frozen=True, kw_only=True)
class TensorBoardLogs:
    """Logs of all runs, a folder each, below a prefix of a bucket."""

    bucket: s3.IBucket
    prefix: str = "tensorboard"
    """Default: "tensorboard"."""

    @property
    def log_dir(self) -> str:
        """For ``tensorboard --logdir``."""
        return f"s3://{self.bucket.bucket_name}/{self.prefix}"

    @property
    def environment(self) -> Mapping[str, str]:
        """For jobs: ``TENSORBOARD_LOGDIR``, in which each run makes a folder."""
        return {"TENSORBOARD_LOGDIR": self.log_dir}

    def grant_write(self, grantee: iam.IGrantable) -> iam.Grant:
        return self.bucket.grant_read_write(grantee, f"{self.prefix}/*")

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        return self.bucket.grant_read(grantee, f"{self.prefix}/*")
