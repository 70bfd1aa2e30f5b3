"""CloudFormation property of a setting, of a rule's field, and of a template."""

from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

FILE_SYSTEM = "AWS::FSx::FileSystem"
ASSOCIATION = "AWS::FSx::DataRepositoryAssociation"
CLUSTER = "AWS::SageMaker::Cluster"
EKS_CLUSTER = "AWS::EKS::Cluster"
EKS_ADDON = "AWS::EKS::Addon"
EXTENSION = "AWS::SageMaker::Extension"
ACCESS_ENTRY = "AWS::EKS::AccessEntry"
GROUP = f"{CLUSTER}.ClusterInstanceGroup"
"""A structure in a resource, as CloudFormation's registry calls it. What it has, a restricted group may have too."""
RESTRICTED_GROUP = f"{CLUSTER}.ClusterRestrictedInstanceGroup"
RESTRICTED_LUSTRE = f"{CLUSTER}.FSxLustreConfig"
BATCH_SIZE = f"{CLUSTER}.CapacitySizeConfig"
TAINT = f"{CLUSTER}.ClusterKubernetesTaint"
DEPLOYMENT = f"{CLUSTER}.DeploymentConfig"
SCHEDULER = "AWS::SageMaker::ClusterSchedulerConfig"
SCHEDULER_PRIORITY = f"{SCHEDULER}.PriorityClass"
QUOTA = "AWS::SageMaker::ComputeQuota"
QUOTA_RESOURCE = f"{QUOTA}.ComputeQuotaResourceConfig"
SLURM = f"{CLUSTER}.ClusterOrchestratorSlurmConfig"
ACCOUNTING = f"{CLUSTER}.ClusterAccountingDatabase"
SCHEDULED_UPDATE = f"{CLUSTER}.ScheduledUpdateConfig"
AUTO_PATCH = f"{CLUSTER}.AutoPatchConfig"
VOLUME = f"{CLUSTER}.ClusterEbsVolumeConfig"
MOUNT = f"{CLUSTER}.ClusterFsxLustreConfig"
LIFE_CYCLE = f"{CLUSTER}.ClusterLifeCycleConfig"
SHARED_ENVIRONMENT = f"{CLUSTER}.SharedEnvironmentConfig"
VPC_CONFIG = f"{CLUSTER}.VpcConfig"


@dataclass(frozen=True)
class Property:
    """
    A property of a resource, in the annotation of a field: ``Annotated[int, Property(FILE_SYSTEM, "KmsKeyId")]``.

    On a setting of the environment file it says what the setting becomes. On what rules judge it says where a template
    has the value.
    """

    resource: str
    """The type of the resource, or of the structure in it."""
    path: str
    """``LustreConfiguration.EfaEnabled``"""
    default: Any = None
    """Value of the service where a template has none."""
    each: str = ""
    """Only key of the structures of a list: ``AlarmName``. Default: none, entries are plain."""

    @property
    def type(self) -> str:
        return self.resource.partition(".")[0]

    @property
    def structure(self) -> str:
        """Structure in the resource; empty for the resource itself."""
        return self.resource.partition(".")[2]

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def pointer(self) -> str:
        """Pointer of CloudFormation's registry: ``LustreConfiguration/EfaEnabled``."""
        return self.path.replace(".", "/")

    def read(self, described: Any) -> Any:
        """Value in an API answer or in properties; the default if absent."""
        for part in self.path.split("."):
            described = described.get(part) if isinstance(described, dict) else None
        if described is not None and self.each:
            return [entry[self.each] for entry in described]
        return self.default if described is None else described


def property_in(annotation: Any) -> Property | None:
    found = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((each for each in found if isinstance(each, Property)), None)
