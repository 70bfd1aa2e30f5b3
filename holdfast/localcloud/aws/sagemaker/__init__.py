"""HyperPod, task governance and MLflow operations of SageMaker over plain records. Instances are run elsewhere."""

from holdfast.localcloud.aws.sagemaker.checks import References
from holdfast.localcloud.aws.sagemaker.lifecycle import check_lifecycle
from holdfast.localcloud.aws.sagemaker.rules import check_settings
from holdfast.localcloud.aws.sagemaker.service import SageMaker
from holdfast.localcloud.aws.sagemaker.store import RESTRICTED

__all__ = ["RESTRICTED", "References", "SageMaker", "check_lifecycle", "check_settings"]
