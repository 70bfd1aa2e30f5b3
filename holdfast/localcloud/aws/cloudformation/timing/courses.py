"""
Durations of resource creations.

A *provider* is usable when its creation is over (a policy takes effect, a gateway is attached). A *user* uses its
surroundings when its creation starts (a file system probes its network, a cluster assumes its role). So a user without
a dependency on its provider starts too early, however fast the machine is.

The seconds are assumed, in the proportions of real deployments.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Course:
    seconds: float
    user: bool = False
    """True if its surroundings matter at its start; else it matters to others at its end."""


_PROVIDERS: dict[str, float] = {
    "AWS::EC2::EIP": 15,
    "AWS::EC2::InternetGateway": 16,
    "AWS::EC2::SecurityGroup": 8,
    "AWS::EC2::Subnet": 4,
    "AWS::EC2::VPC": 12,
    "AWS::EC2::VPCEndpoint": 20,
    "AWS::EC2::VPCGatewayAttachment": 16,
    "AWS::EKS::AccessEntry": 6,
    "AWS::EKS::PodIdentityAssociation": 6,
    "AWS::Events::Rule": 60,
    "AWS::IAM::ManagedPolicy": 17,
    "AWS::IAM::Policy": 17,
    "AWS::IAM::Role": 18,
    "AWS::KMS::Key": 30,
    "AWS::Lambda::Function": 7,
    "AWS::S3::Bucket": 22,
}

_USERS: dict[str, float] = {
    "AWS::APS::Workspace": 20,
    "AWS::CloudFormation::Stack": 60,
    "AWS::EC2::FlowLog": 6,
    "AWS::EC2::NatGateway": 100,
    "AWS::EKS::Addon": 60,
    "AWS::EKS::Cluster": 540,
    "AWS::EKS::Nodegroup": 180,
    "AWS::FSx::DataRepositoryAssociation": 300,
    "AWS::FSx::FileSystem": 600,
    "AWS::Grafana::Workspace": 120,
    "AWS::RDS::DBInstance": 480,
    "AWS::SageMaker::Cluster": 900,
    "AWS::SageMaker::ClusterSchedulerConfig": 30,
    "AWS::SageMaker::ComputeQuota": 30,
    "AWS::SageMaker::Extension": 180,
    "AWS::SageMaker::MlflowApp": 180,
}

_OTHERS = Course(seconds=3)
_FUNCTION = Course(seconds=30, user=True)


def course(resource_type: str) -> Course:
    if resource_type.startswith("Custom::"):
        return _FUNCTION
    if resource_type in _USERS:
        return Course(seconds=_USERS[resource_type], user=True)
    return Course(seconds=_PROVIDERS[resource_type]) if resource_type in _PROVIDERS else _OTHERS
