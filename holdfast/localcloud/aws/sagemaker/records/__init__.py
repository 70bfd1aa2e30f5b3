"""Resources beside clusters that are records only: task governance, extensions, MLflow apps."""

from holdfast.localcloud.aws.sagemaker.records.extensions import Extensions
from holdfast.localcloud.aws.sagemaker.records.governance import Governance
from holdfast.localcloud.aws.sagemaker.records.mlflow import Mlflow

__all__ = ["Extensions", "Governance", "Mlflow"]
