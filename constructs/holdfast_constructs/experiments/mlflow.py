"""MLflow of SageMaker: what runs were made with which settings, and how they went.

An MLflow App, and not a tracking server: an app scales to nothing and has no hourly price, where the smallest tracking
server costs for every hour that it exists; and apps are the newer of the two (December 2025).
"""

from collections.abc import Mapping

from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct


class MlflowApp(Construct):
    """An MLflow App that keeps artifacts below a prefix of a bucket."""

    app_arn: str
    environment: Mapping[str, str]
    """For jobs: ``MLFLOW_TRACKING_URI``, which the Python package ``sagemaker-mlflow`` resolves."""

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, bucket: s3.IBucket, prefix: str = "mlflow"
    ) -> None:
        """
        Define an app.

        Args:
            name: At most 256 letters, digits and hyphens, such as the cluster's name.
            bucket: Where artifacts are kept. It is not deleted with the app.
            prefix: Default: "mlflow".
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
        Allow ``grantee`` to write and read runs and artifacts; artifacts go to the bucket directly.

        MLflow Apps have one action for their whole interface: who may write a run may delete one.
        """
        self._bucket.grant_read_write(grantee, self._objects)
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["sagemaker:CallMlflowAppApi", "sagemaker:DescribeMlflowApp"],
            resource_arns=[self.app_arn],
        )
