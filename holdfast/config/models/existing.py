"""Existing resources of a team: buckets, file systems, scripts, an EKS cluster."""

from typing import Annotated

from holdfast.catalog import CLUSTER, Property
from holdfast.config.models import aws_fields as aws
from holdfast.config.models import fields
from holdfast.config.models.base import Model
from holdfast.config.models.lifecycle_mode import LifecycleMode


class ExistingBucket(Model):
    """A bucket that is there already. Nothing in it is deleted, and its settings stay what they are."""

    bucket_name: aws.BucketName
    """The bucket, in this region."""
    kms_key_arn: aws.KmsKeyArn | None = None
    """The key that it is encrypted with: nodes get the right to use it. Default: a key of S3, or one that they may
    use already"""
    manage_bucket_policy: bool = False
    """Whether its policy is written by this stack (TLS only), in the place of the one that it has. Default: false, its
    policy is left alone"""


class LifecycleBucket(ExistingBucket):
    """A bucket that is there already, to which the lifecycle scripts are written."""

    prefix: fields.Prefix | None = None
    """Where in it; the scripts of each version get a prefix of their own below. Default: the environment's name"""


class LifeCycleConfig(Model):
    """Lifecycle scripts that are there already and stay as they are (API: LifeCycleConfig)."""

    source_s3_uri: aws.S3Uri
    """The bucket and prefix that HyperPod fetches them from (API: SourceS3Uri)."""
    on_create: aws.LifecycleFileName | None = None
    """The one that HyperPod runs in place of its own configuration of a node. Default: none,
    on_init_complete is given"""
    on_init_complete: aws.LifecycleFileName | None = None
    """The one that HyperPod runs after its own configuration of a node. Default: none, on_create is given"""

    @property
    def mode(self) -> LifecycleMode:
        """Lifecycle mode of the scripts."""
        return "custom" if self.on_create is not None else "extension"


class ExistingLustre(Model):
    """An FSx for Lustre file system that exists already. Only its data repository associations (`datasets`) change."""

    file_system_id: aws.FileSystemId
    """The file system."""
    mount_name: aws.LustreMountName
    """Its mount name."""
    dns_name: aws.FileSystemDnsName | None = None
    """Its DNS name. Default: the one that FSx gives such an id in this region"""


class ExistingHome(Model):
    """An FSx for OpenZFS file system that is there already. Nothing of it is changed."""

    file_system_id: aws.FileSystemId
    """The file system."""
    dns_name: aws.FileSystemDnsName | None = None
    """Its DNS name. Default: the one that FSx gives such an id in this region"""


class ExistingEks(Model):
    """An EKS cluster that is there already. Its version, its network and who administers it are its owner's."""

    cluster: Annotated[aws.EksClusterNameOrArn, Property(CLUSTER, "Orchestrator.Eks.ClusterArn")]
    """The cluster: its name, or its ARN."""
    install_charts: bool = False
    """Whether this stack installs HyperPod's Helm charts on it. The add-ons that nodes need (vpc-cni, kube-proxy,
    coredns, eks-pod-identity-agent) are its owner's in any case. Default: false, its owner has installed them"""
