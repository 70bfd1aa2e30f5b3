"""Lustre for pods: the CSI driver, and a volume with its claim."""

from aws_cdk import aws_iam as iam
from constructs import Construct

from holdfast.catalog import charts
from holdfast_constructs.cluster import IHyperPodCluster
from holdfast_constructs.eks import EksAddon, HelmRelease, IHyperPodEks, PodIdentity
from holdfast_constructs.storage import ILustreFileSystem


class FsxCsiDriver(Construct):
    """FSx for Lustre CSI driver, for existing file systems: it may describe but not create or delete them."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster: IHyperPodEks,
        cluster: IHyperPodCluster,
        version: str | None = None,
    ) -> None:
        """Define the driver, created after the nodes of ``cluster``."""
        super().__init__(scope, construct_id)
        identity = PodIdentity(
            self,
            "Identity",
            eks_cluster=eks_cluster,
            namespace="kube-system",
            service_account="fsx-csi-controller-sa",
            # The action has no resource type: limited to file systems it is denied.
            statements=[iam.PolicyStatement(actions=["fsx:DescribeFileSystems"], resources=["*"])],
        )
        EksAddon(
            self,
            "Addon",
            eks_cluster=eks_cluster,
            name="aws-fsx-csi-driver",
            version=version,
            after=[cluster.nodes, identity.resource],
        )


class LustreVolume(Construct):
    """A file system as a volume for the pods of one namespace."""

    claim_name = "lustre"
    """What a pod names in ``persistentVolumeClaim``."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster: IHyperPodEks,
        driver: FsxCsiDriver,
        file_system: ILustreFileSystem,
        capacity_gib: int,
        namespace: str = "default",
    ) -> None:
        """
        Define a volume and its claim. Deleting them keeps the file system.

        Args:
            capacity_gib: Shown by Kubernetes; no limit.
            namespace: Created if missing. Default: "default". One volume per namespace.
        """
        super().__init__(scope, construct_id)
        HelmRelease(
            self,
            "Release",
            installer=eks_cluster.installer,
            chart=charts()["storage"],
            namespace=namespace,
            values=volume_values(file_system, capacity_gib=capacity_gib, namespace=namespace, claim=self.claim_name),
            wait=False,  # a claim is bound in its own time
            after=[driver],
        )


def volume_values(
    file_system: ILustreFileSystem, *, capacity_gib: int, namespace: str, claim: str
) -> dict[str, dict[str, object]]:
    """Values of the chart: a volume without storage class, so nothing is provisioned."""
    capacity = f"{capacity_gib}Gi"
    return {
        "persistentVolume": {
            "name": f"{claim}-{namespace}",
            "capacity": capacity,
            "csi": {
                "volumeHandle": file_system.file_system_id,
                "volumeAttributes": {"dnsname": file_system.dns_name, "mountname": file_system.mount_name},
            },
        },
        "persistentVolumeClaim": {
            "name": claim,
            "storageClassName": '""',  # with its quotes: the chart puts it into YAML as it is
            "requests": {"storage": capacity},
        },
    }
