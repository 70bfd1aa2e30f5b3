"""The lifecycle of each group: which file of the bundle its nodes run, and what they have to be told for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk.aws_sagemaker import CfnCluster

from holdfast_constructs._bundle_files import ACCOUNTING, MOUNTS
from holdfast_constructs._instance_group import InstanceGroup, LifecycleMode
from holdfast_constructs._lifecycle_bundle import LifecycleBundle
from holdfast_constructs._mounts import LustreMount, Mount
from holdfast_constructs._orchestrator import AccountingDatabase, EksOrchestrator, SlurmOrchestrator


@dataclass(frozen=True, kw_only=True)
class Lifecycle:
    """
    The lifecycle of a cluster's groups.

    HyperPod takes OnCreate alone on EKS and with continuous provisioning (SageMaker developer guide, "Getting started
    with SageMaker HyperPod using the AWS CLI"), so that custom is the default there.
    """

    bundle: LifecycleBundle | None
    orchestrator: SlurmOrchestrator | EksOrchestrator
    continuous: bool
    mounts: Sequence[Mount]
    """Those of groups that have none of their own."""

    def mode(self, group: InstanceGroup) -> LifecycleMode:
        """Who makes the nodes of a group ready."""
        if group.lifecycle_mode is not None:
            return group.lifecycle_mode
        if isinstance(self.orchestrator, EksOrchestrator) or self.continuous:
            return "custom"
        return "extension" if self.bundle is not None else "none"

    def check(self, groups: Sequence[InstanceGroup]) -> None:
        """Refuse a group whose mode needs a file that there is not."""
        for group in groups:
            mode = self.mode(group)
            if mode == "none":
                continue
            hook = "on_create" if mode == "custom" else "on_init_complete"
            if self.bundle is None or getattr(self.bundle, hook) is None:
                given = "no lifecycle bundle" if self.bundle is None else f"a lifecycle bundle without {hook}"
                raise ValueError(
                    f"instance group '{group.name}': got lifecycle_mode '{mode}' and {given}; allowed: a bundle with "
                    f"{hook}, or another mode"
                )

    def property(self, group: InstanceGroup) -> CfnCluster.ClusterLifeCycleConfigProperty | None:
        """The LifeCycleConfig of a group."""
        mode = self.mode(group)
        if self.bundle is None or mode == "none":
            return None
        return CfnCluster.ClusterLifeCycleConfigProperty(
            on_create=self.bundle.on_create if mode == "custom" else None,
            on_init_complete=self.bundle.on_init_complete if mode == "extension" else None,
            source_s3_uri=self.bundle.source_s3_uri,
        )

    def tell(self, groups: Sequence[InstanceGroup]) -> None:
        """Put into the bundle what HyperPod leaves to scripts: the mounts, and where accounting is kept."""
        if self.bundle is None or isinstance(self.orchestrator, EksOrchestrator):
            return
        own = [group for group in groups if self.mode(group) == "custom"]
        mounts = [
            {"instance_group": group.name, **_mount(mount)}
            for group in own
            for mount in (self.mounts if group.mounts is None else group.mounts)
        ]
        if mounts:
            self.bundle.add_data(MOUNTS, mounts)
        database = self.orchestrator.accounting_database
        if database is not None and any(group.node_type == "Controller" for group in own):
            self.bundle.add_data(ACCOUNTING, _accounting(database))


def _mount(mount: Mount) -> dict[str, str]:
    if isinstance(mount, LustreMount):
        return {
            "type": "lustre",
            "dns_name": mount.file_system.dns_name,
            "mount_name": mount.file_system.mount_name,
            "mount_path": mount.mount_path,
        }
    return {"type": "openzfs", "dns_name": mount.file_system.dns_name, "mount_path": mount.mount_path}


def _accounting(database: AccountingDatabase) -> dict[str, object]:
    name = {} if database.name is None else {"database": database.name}
    return {
        "endpoint": database.endpoint,
        "port": database.port,
        "secret_arn": database.secret.secret_arn,
        **name,
    }
