from typing import Annotated, Literal

from pydantic import Field

from holdfast.catalog import ASSOCIATION, FILE_SYSTEM, LustreThroughput, OpenZfsThroughput, Property, bounds
from holdfast.config.models import aws_fields as aws
from holdfast.config.models import fields
from holdfast.config.models.base import Model
from holdfast.config.models.existing import ExistingBucket, ExistingHome, ExistingLustre
from holdfast.config.refusals import Allowed

MOST_DATASETS = bounds("data_repository_associations").most
Compression = Literal["LZ4", "NONE"]
FileEvent = Literal["NEW", "CHANGED", "DELETED"]


class Dataset(Model):
    """A folder of the file system and a prefix of a bucket (a data repository association)."""

    name: aws.DatasetName
    """Unique among the datasets."""
    file_system_path: Annotated[fields.FileSystemPath, Property(ASSOCIATION, "FileSystemPath")]
    """The folder. Folders of datasets may not lie in one another."""
    s3_prefix: Annotated[fields.Prefix | None, Property(ASSOCIATION, "DataRepositoryPath")] = None
    """The prefix in the data bucket. Prefixes of datasets may not lie in one another. Default: none, s3_uri is
    given"""
    s3_uri: Annotated[aws.S3Uri | None, Property(ASSOCIATION, "DataRepositoryPath")] = None
    """Bucket and prefix, where it is another bucket that is there already. Default: none,
    s3_prefix is given"""
    auto_import: Annotated[
        tuple[FileEvent, ...], Field(strict=False), Property(ASSOCIATION, "S3.AutoImportPolicy")
    ] = ()
    """Which changes of objects appear in the folder by themselves. Default: none"""
    auto_export: Annotated[
        tuple[FileEvent, ...], Field(strict=False), Property(ASSOCIATION, "S3.AutoExportPolicy")
    ] = ()
    """Which changes of files appear in the bucket by themselves. Default: none"""


class Lustre(Model):
    """The FSx for Lustre file system, of deployment type PERSISTENT_2 on SSD, or one that is there already."""

    existing: ExistingLustre | None = None
    """Existing file system, without throughput, metadata_iops and compression here. Default: a new one"""
    capacity_gib: Annotated[fields.CapacityGib | None, Property(FILE_SYSTEM, "StorageCapacity")] = None
    """Storage capacity in GiB. It can grow later, and never shrink. Default: none, and existing names a file system"""
    throughput_mbps_per_tib: Annotated[
        LustreThroughput | None, Property(FILE_SYSTEM, "LustreConfiguration.PerUnitStorageThroughput")
    ] = None
    """Throughput per TiB of capacity, in MB/s. Default: none, and existing names a
    file system"""
    mount_path: fields.AbsolutePath = "/fsx"
    """Where it is mounted on every node. Default: /fsx"""
    efa: Annotated[bool, Property(FILE_SYSTEM, "LustreConfiguration.EfaEnabled")] = False
    """Whether nodes reach it through EFA. It cannot be changed later, and the capacity has to be a multiple of 4800
    GiB or more, depending on the throughput. Default: false, over TCP"""
    metadata_iops: Annotated[
        fields.MetadataIops | None, Property(FILE_SYSTEM, "LustreConfiguration.MetadataConfiguration.Iops")
    ] = None
    """Metadata operations per second. Default: as many as come with the capacity"""
    compression: Annotated[Compression, Property(FILE_SYSTEM, "LustreConfiguration.DataCompressionType", "NONE")] = (
        "LZ4"
    )
    """How data is compressed. Default: LZ4"""
    maintenance_window: Annotated[
        aws.WeeklyTime | None, Property(FILE_SYSTEM, "LustreConfiguration.WeeklyMaintenanceStartTime")
    ] = None
    """When the half hour begins in which FSx may patch it, each week. Default: one that FSx chooses"""
    preload: fields.Paths = ()
    """Folders whose files are fetched from S3 when the cluster is made; others are when they are first read.
    Default: none"""
    datasets: Annotated[
        tuple[Dataset, ...],
        Field(max_length=MOST_DATASETS, strict=False),
        Allowed(f"a list of at most {MOST_DATASETS} datasets", [], code="HF617"),
    ] = ()
    """Folders that are kept equal with S3. Default: none"""


class Home(Model):
    """An FSx for OpenZFS file system for home directories."""

    existing: ExistingHome | None = None
    """Existing file system, without capacity and throughput here. Default: a new one"""
    capacity_gib: Annotated[fields.HomeCapacityGib | None, Property(FILE_SYSTEM, "StorageCapacity")] = None
    """Storage capacity in GiB. It can grow later, and never shrink. Default: none, and existing names a file system"""
    throughput_mbps: Annotated[OpenZfsThroughput, Property(FILE_SYSTEM, "OpenZFSConfiguration.ThroughputCapacity")] = (
        160
    )
    """Throughput in MB/s. Default: 160"""
    mount_path: fields.AbsolutePath = "/home"
    """Where it is mounted on every node. Default: /home"""


class Storage(Model):
    """What holds data: file systems, the data bucket and the event log."""

    on_delete: Literal["Retain", "Delete"] = "Retain"
    """What deleting the stack does with the data that it made. What is there already stays in any case.
    Default: Retain"""
    data: ExistingBucket | None = None
    """A data bucket to use instead of making one. Default: one is made"""
    lustre: Lustre | None = None
    """The file system that nodes mount. Default: none"""
    home: Home | None = None
    """Home directories that all nodes share. Default: none, each node has its own"""
