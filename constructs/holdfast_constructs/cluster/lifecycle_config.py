from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.validation import model
from holdfast.validation.translation import Properties, properties_of
from holdfast_constructs.cluster.orchestrators import AccountingDatabase, EksOrchestrator, SlurmOrchestrator
from holdfast_constructs.groups import InstanceGroup, LifecycleMode
from holdfast_constructs.lifecycle import ACCOUNTING, MOUNTS, MOUNTS_OF, ILifecycleScripts
from holdfast_constructs.storage import LustreMount, Mount


@dataclass(frozen=True, kw_only=True)
class Lifecycle:
    """
    Lifecycle of a cluster's groups.

    HyperPod accepts only OnCreate on EKS, and by an older version of the page with continuous provisioning (SageMaker
    developer guide, "Getting started with SageMaker HyperPod using the AWS CLI"), so custom is the default there.
    """

    bundle: ILifecycleScripts | None
    orchestrator: SlurmOrchestrator | EksOrchestrator
    continuous: bool
    mounts: Sequence[Mount]
    """Those of groups that have none of their own."""

    def scripts(self, group: InstanceGroup) -> ILifecycleScripts | None:
        """Scripts of a group, unless its mode is none."""
        return group.lifecycle or self.bundle

    def mode(self, group: InstanceGroup) -> LifecycleMode:
        if group.lifecycle_mode is not None:
            return group.lifecycle_mode
        if isinstance(self.orchestrator, EksOrchestrator):
            return "custom"
        if self.scripts(group) is None:
            return "none"
        return "custom" if self.continuous else "extension"

    def check(self, groups: Sequence[InstanceGroup]) -> None:
        """Refuse a group whose mode needs a missing file."""
        for group in groups:
            mode, scripts = self.mode(group), self.scripts(group)
            if mode == "none":
                continue
            hook = "on_create" if mode == "custom" else "on_init_complete"
            if scripts is None or getattr(scripts, hook) is None:
                given = "no lifecycle bundle" if scripts is None else f"a lifecycle bundle without {hook}"
                raise ValueError(
                    f"instance group '{group.name}': got lifecycle_mode '{mode}' and {given}; allowed: a bundle with "
                    f"{hook}, or another mode"
                )

    def properties(self, group: InstanceGroup) -> Properties | None:
        mode, scripts = self.mode(group), self.scripts(group)
        if scripts is None or mode == "none":
            return None
        return properties_of(
            model.Lifecycle,
            source_s3_uri=scripts.source_s3_uri,
            on_create=scripts.on_create if mode == "custom" else None,
            on_init_complete=scripts.on_init_complete if mode == "extension" else None,
        )

    def tell(self, groups: Sequence[InstanceGroup]) -> None:
        """Put the data that HyperPod leaves to scripts beside them: mounts, and the accounting database."""
        for scripts, own in self._by_scripts(groups):
            mounts = self._mounts(own)
            if mounts:
                scripts.tell(MOUNTS, mounts)
            database = None if isinstance(self.orchestrator, EksOrchestrator) else self.orchestrator.accounting_database
            if database is not None and any(group.node_type == "Controller" for group in own):
                scripts.tell(ACCOUNTING, _accounting(database))

    def tell_more(self, group: InstanceGroup) -> None:
        """The same for a group added later, in a file of its own."""
        for scripts, own in self._by_scripts([group]):
            mounts = self._mounts(own)
            if mounts:
                scripts.tell(MOUNTS_OF.format(group=group.name), mounts)

    def _by_scripts(
        self, groups: Sequence[InstanceGroup]
    ) -> Iterator[tuple[ILifecycleScripts, Sequence[InstanceGroup]]]:
        """Scripts of mode custom with their groups; not on EKS."""
        if isinstance(self.orchestrator, EksOrchestrator):
            return
        found: dict[str, tuple[ILifecycleScripts, list[InstanceGroup]]] = {}
        for group in groups:
            scripts = self.scripts(group)
            if scripts is not None and self.mode(group) == "custom":
                found.setdefault(scripts.node.path, (scripts, []))[1].append(group)
        yield from found.values()

    def _mounts(self, groups: Sequence[InstanceGroup]) -> list[dict[str, str]]:
        return [
            {"instance_group": group.name, **_mount(mount)}
            for group in groups
            for mount in (self.mounts if group.mounts is None else group.mounts)
        ]


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
        **({"tls": True} if database.tls else {}),
    }
