"""
The environment file as frozen models: its shape, its defaults, and the values derived from it.

A field's docstring is what editors show for it. Rules that look at several fields are in ``_rules``.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from holdfast.config import _fields as fields

FileEvent = Literal["NEW", "CHANGED", "DELETED"]


class Model(BaseModel):
    """Base of every section: unknown settings and values of the wrong type are refused, nothing can be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class Network(Model):
    """The VPC and the one subnet that the nodes live in; EFA does not cross availability zones."""

    cidr: fields.Cidr
    """IPv4 block of the VPC. Its first half is the nodes' subnet and must have room for the instance groups; neither
    can change its size later."""
    availability_zone: fields.AvailabilityZone
    """Where nodes and file system are. It must be in the environment's region."""
    egress: Literal["nat", "none"] = "nat"
    """How nodes reach the internet: through a NAT gateway, or not at all. S3 always goes through a gateway
    endpoint. Default: nat"""


class GroupSlurm(Model):
    """What Slurm makes of an instance group (API: ClusterSlurmConfig)."""

    node_type: Literal["Controller", "Login", "Compute"]
    """Controller runs slurmctld, Compute runs jobs, Login is for people. It cannot be changed later."""
    partition: fields.ServiceName | None = None
    """The partition of a Compute group: required there, forbidden elsewhere. Default: none"""


class InstanceGroup(Model):
    """Nodes of one kind that are scaled and replaced as a unit (API: ClusterInstanceGroupSpecification)."""

    name: fields.ServiceName
    """Unique in the cluster. Changing it replaces the group's nodes."""
    instance_type: fields.InstanceTypeName
    """Such as ml.p5.48xlarge."""
    instance_count: fields.NodeCount
    """Nodes that work."""
    spare_count: fields.NodeCount = 0
    """Nodes that idle until one of the others is lost; the group's InstanceCount is the sum. Default: 0"""
    threads_per_core: fields.ThreadsPerCore = 1
    """2 turns hyper-threading on. Default: 1, as in the API"""
    volume_gib: fields.VolumeGib | None = None
    """Size of an extra EBS volume per node, in GiB. Default: no extra volume"""
    slurm: GroupSlurm
    """What Slurm makes of the group."""

    @property
    def total_count(self) -> int:
        """The InstanceCount that AWS is asked for: working nodes and spares."""
        return self.instance_count + self.spare_count


class Cluster(Model):
    """The HyperPod cluster."""

    name: fields.ServiceName | None = None
    """Changing it replaces the whole cluster. Default: the environment's name"""
    node_recovery: Literal["Automatic", "None"] = "Automatic"
    """Whether HyperPod replaces or reboots nodes that its health monitoring finds faulty. Default: Automatic"""
    instance_groups: Annotated[
        tuple[InstanceGroup, ...],
        Field(min_length=1, max_length=100, strict=False),
        fields.Allowed("a list of 1 to 100 instance groups", []),
    ]
    """Exactly one of them is the Controller. Taking one away deletes its nodes."""


class Slurm(Model):
    """Settings of the Slurm orchestrator."""

    config_strategy: Literal["Overwrite", "Managed", "Merge"] = "Managed"
    """What an update does with manual edits of slurm.conf: Overwrite discards them, Managed fails when there are
    some, Merge keeps them (API: SlurmConfigStrategy). Default: Managed"""


class Dataset(Model):
    """A folder of the file system and a prefix of the data bucket (a data repository association)."""

    name: fields.ServiceName
    """Unique among the datasets."""
    file_system_path: fields.FileSystemPath
    """The folder. Folders of datasets may not lie in one another."""
    s3_prefix: fields.Prefix
    """The prefix. Prefixes of datasets may not lie in one another."""
    auto_import: Annotated[tuple[FileEvent, ...], Field(strict=False)] = ()
    """Which changes of objects appear in the folder by themselves. Default: none"""
    auto_export: Annotated[tuple[FileEvent, ...], Field(strict=False)] = ()
    """Which changes of files appear in the bucket by themselves. Default: none"""


class Lustre(Model):
    """The FSx for Lustre file system, of deployment type PERSISTENT_2 on SSD."""

    capacity_gib: fields.CapacityGib
    """Storage capacity in GiB. It can grow later, and never shrink."""
    throughput_mbps_per_tib: Literal[125, 250, 500, 1000]
    """Throughput per TiB of capacity, in MB/s (API: PerUnitStorageThroughput)."""
    mount_path: fields.AbsolutePath = "/fsx"
    """Where it is mounted on every node. Default: /fsx"""
    datasets: Annotated[
        tuple[Dataset, ...],
        Field(max_length=8, strict=False),
        fields.Allowed("a list of at most 8 datasets", []),
    ] = ()
    """Folders that are kept equal with S3. Default: none"""


class Storage(Model):
    """What holds data: the file system, the data bucket and the event log."""

    on_delete: Literal["Retain", "Delete"] = "Retain"
    """What deleting the stack does with the data. Default: Retain"""
    lustre: Lustre
    """The file system that every node mounts."""


class User(Model):
    """A POSIX account made on every node."""

    name: fields.UserName
    """Login name."""
    uid: fields.UserId
    """The same on every node, so that files on the shared file system keep their owner. The nodes' images use up
    to 1000."""


class Lifecycle(Model):
    """What the lifecycle scripts do on a node when it is made."""

    users: Annotated[tuple[User, ...], Field(strict=False)] = ()
    """Accounts for people and jobs. Default: none"""


class TrainingImage(Model):
    """Where the software that jobs run in comes from."""

    source: Literal["environment", "ecr"]
    """ecr: a container image. environment: this Python environment stands in for it, on the embedded AWS only."""
    repository: fields.Repository | None = None
    """The ECR repository, with source ecr. Default: none"""


class Images(Model):
    """The images that nodes run."""

    training: TrainingImage
    """The image of training jobs; nodes may pull it."""


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


class Environment(Model):
    """One environment: a HyperPod cluster with all that belongs to it, deployed as one stack."""

    name: fields.EnvironmentName
    """Names the stack, and the cluster unless that has a name of its own. Changing it makes another environment."""
    cloud: Literal["aws", "embedded"] = "aws"
    """Where it is deployed: AWS, or the embedded AWS on this machine. Default: aws"""
    account: fields.Account
    """AWS account, in quotes so that YAML keeps its leading zeros."""
    region: fields.Region
    """AWS region."""
    network: Network
    """VPC, subnet and way out."""
    cluster: Cluster
    """Instance groups and recovery."""
    slurm: Slurm = Slurm()
    """Settings of the orchestrator. Default: each setting's own default"""
    storage: Storage
    """File system and data bucket."""
    lifecycle: Lifecycle = Lifecycle()
    """What happens on a node when it is made. Default: no accounts are made"""
    images: Images | None = None
    """Images that nodes run. Default: none, jobs bring their own software"""
    stand_ins: StandIns = StandIns()
    """What takes the place of what this machine lacks; with cloud embedded only. Default: nothing"""

    @property
    def stack_name(self) -> str:
        return f"holdfast-{self.name}"

    @property
    def cluster_name(self) -> str:
        return self.cluster.name or self.name
