"""TensorBoard: a place for its logs, and nothing that runs.

SageMaker offers TensorBoard as an application of a Studio domain, one per user, started by hand and paid by the hour: a
domain, user profiles and their network only to draw curves. Logs in S3 are read by that application and by any
``tensorboard --logdir s3://...``, and cost what their bytes cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3


@dataclass(frozen=True, kw_only=True)
class TensorBoardLogs:
    """The logs of all runs, a folder each, below a prefix of a bucket."""

    bucket: s3.IBucket
    prefix: str = "tensorboard"
    """Default: "tensorboard"."""

    @property
    def log_dir(self) -> str:
        """What ``tensorboard --logdir`` takes."""
        return f"s3://{self.bucket.bucket_name}/{self.prefix}"

    @property
    def environment(self) -> Mapping[str, str]:
        """For jobs: ``TENSORBOARD_LOGDIR``, below which each run makes a folder of its own."""
        return {"TENSORBOARD_LOGDIR": self.log_dir}

    def grant_write(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow ``grantee`` to write logs and to read them again."""
        return self.bucket.grant_read_write(grantee, f"{self.prefix}/*")

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow ``grantee`` to read logs."""
        return self.bucket.grant_read(grantee, f"{self.prefix}/*")
