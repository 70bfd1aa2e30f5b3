"""
MLflow of SageMaker.

An MLflow App, not a tracking server: an app scales to zero without an hourly price, and is the newer of the two
(December 2025).
"""

from collections.abc import Mapping

from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct


class MlflowApp(Construct):
    """An MLflow App with artifacts below a prefix of a bucket."""

    app_arn: str
    environment: Mapping[str, str]
    """For jobs: ``MLFLOW_TRACKING_URI``, which the Python package ``sagemaker-mlflow`` resolves."""

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, bucket: s3.IBucket, prefix: str = "mlflow"
    ) -> None:
        """
        Define an app.

        Args:
            name: At most 256 letters, digits and hyphens.
            bucket: Not deleted with the app.
        """
        super().__init__(scope, construct_id)
        self._bucket = bucket
        self._objects = f"{prefix}/*"
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"),
            description="MLflow keeps artifacts",
        )
        access = bucket.grant_read_write(role, self._objects)
        app = sagemaker.CfnMlflowApp(
            self,
            "Resource",
            name=name,
            artifact_store_uri=f"s3://{bucket.bucket_name}/{prefix}",
            role_arn=role.role_arn,
        )
        access.apply_before(app)
        self.app_arn = app.attr_arn
        self.environment = {"MLFLOW_TRACKING_URI": app.attr_arn}

    def grant_track(self, grantee: iam.IGrantable) -> iam.Grant:
        """
        Allow ``grantee`` to read and write runs and artifacts.

        MLflow Apps have one action for their whole interface: writers of runs may delete them.
        """
        self._bucket.grant_read_write(grantee, self._objects)
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["sagemaker:CallMlflowAppApi", "sagemaker:DescribeMlflowApp"],
            resource_arns=[self.app_arn],
        )
