from typing import Annotated, Literal

from pydantic import Field

from holdfast.config.models import aws_fields as aws
from holdfast.config.models import fields
from holdfast.config.models.base import Model
from holdfast.config.models.existing import LifecycleBucket, LifeCycleConfig
from holdfast.config.models.lifecycle_mode import LifecycleMode
from holdfast.config.refusals import Allowed


class User(Model):
    """A POSIX account made on every node."""

    name: fields.UserName
    """Login name."""
    uid: fields.UserId
    """The same on every node, so that files on the shared file system keep their owner. The nodes' images use up
    to 1000."""
    home: fields.AbsolutePath | None = None
    """Home directory. Default: NAME below the mount path of storage.home, else of storage.lustre, else /home"""
    groups: Annotated[tuple[fields.UserName, ...], Field(strict=False), Allowed("a list of names of groups", [])] = ()
    """Further groups of the nodes, such as sudo or docker. Default: none"""


class Lifecycle(Model):
    """What the lifecycle scripts do on a node when it is made."""

    mode: LifecycleMode | None = None
    """extension: HyperPod makes the node ready from its AMI and starts Slurm, then the scripts run (OnInitComplete).
    custom: HyperPod starts nothing, the scripts do all of it (OnCreate). none: HyperPod alone, no scripts. EKS and
    Continuous provisioning take custom only. Default: extension, or custom where nothing else is taken"""
    users: Annotated[tuple[User, ...], Field(strict=False)] = ()
    """Accounts for people and jobs, on nodes where scripts run. Default: none"""
    scripts: fields.ScriptPaths = ()
    """Scripts of your own that run as root after Holdfast's, in this order. Default: none"""
    bucket: LifecycleBucket | None = None
    """A bucket that is there already and takes the scripts. Default: one is made; none where HyperPod alone makes all
    nodes ready"""
    existing: LifeCycleConfig | None = None
    """Scripts that are there already, for all groups that name none, in place of Holdfast's. Default: Holdfast's own"""


class Sessions(Model):
    """Shells of people on the nodes, by a session document of this cluster (Systems Manager: Run As)."""

    default_user: fields.UserName
    """Account of sessions whose role has no tag SSMSessionRunAs, which names another one. The nodes must have it."""


class ImageSource(Model):
    """Where an image comes from."""

    source: Literal["environment", "ecr", "build"]
    """ecr: one that was pushed. build: one that the deployment builds from containers/. environment: this Python
    environment stands in for it, on the embedded AWS only."""
    repository: aws.Repository | None = None
    """The ECR repository, with source ecr. Default: none"""
    digest: aws.DigestSha256 | None = None
    """The image in it, with source ecr; those of health agent and operator are always named. Default: none, jobs
    choose a tag"""


class Images(Model):
    """The images that nodes run."""

    training: ImageSource | None = None
    """The image of training jobs; nodes may pull it. Default: none, jobs say which one they run"""
    health_agent: ImageSource | None = None
    """The image of the health agent, under Kubernetes: with it a pod on each node watches the node, and may ask
    HyperPod for another one. Default: none, a unit of each node watches it and asks for nothing"""
    job_operator: ImageSource | None = None
    """The image of the operator of HoldfastJobs, under Kubernetes: with it the operator is installed. Default: none,
    and the cluster takes no HoldfastJobs"""
    repositories: aws.RepositoryNamesOrArns = ()
    """ECR repositories beside it that nodes may pull from. Default: none"""


class StandIns(Model):
    """What the machine of an embedded environment lacks, and what takes its place; also written to cluster tags."""

    gpu: Literal["cpu"] | None = None
    """What computes instead of GPUs. Default: nothing stands in"""
    efa: Literal["ethernet"] | None = None
    """What carries collectives instead of EFA. Default: nothing stands in"""
    lustre: Literal["directory"] | None = None
    """What is mounted instead of Lustre. Default: nothing stands in"""
    image: Literal["python-environment"] | None = None
    """What jobs run in instead of a container image. Default: nothing stands in"""
