"""Custom resources of the CDK and of Holdfast: done by handlers, or by their functions on a real Kubernetes."""

from holdfast.localcloud.aws.cloudformation.resources.custom.answers import Answers
from holdfast.localcloud.aws.cloudformation.resources.custom.cdk import (
    AutoDeleteObjects,
    BucketDeployment,
    InertHandler,
    RestrictDefaultSecurityGroup,
)
from holdfast.localcloud.aws.cloudformation.resources.custom.first_nodes import FirstNodes, GuardDutyLeftovers
from holdfast.localcloud.aws.cloudformation.resources.custom.helm import HelmRelease
from holdfast.localcloud.aws.cloudformation.resources.custom.sdk_call import SdkCall

__all__ = [
    "Answers",
    "AutoDeleteObjects",
    "BucketDeployment",
    "FirstNodes",
    "GuardDutyLeftovers",
    "HelmRelease",
    "InertHandler",
    "RestrictDefaultSecurityGroup",
    "SdkCall",
]
