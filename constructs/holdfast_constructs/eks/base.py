"""Access to owned and imported EKS clusters, by name and ARN alone."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct, DependencyGroup, IConstruct, IDependable

from holdfast_constructs.eks.access import AccessPolicy, IEksAccess

if TYPE_CHECKING:
    from holdfast_constructs.eks.helm import HelmInstaller


class IHyperPodEks(IEksAccess, Protocol):
    """EKS cluster for HyperPod nodes, owned or imported."""

    dependencies: IDependable
    """What must be there before the HyperPod cluster is created."""
    physical_name: str
    """The name as given, which waits for no resource, unlike ``cluster_name``."""

    @property
    def known_installer(self) -> "HelmInstaller | None":
        """Installer; None for an imported cluster without installations."""
        ...

    @property
    def installer(self) -> "HelmInstaller":
        """Installer of Helm releases. Raises ValueError if the API server of an imported cluster is unreachable."""
        ...

    def install_charts(self, instance_types: Collection[str] | None = None) -> None:
        """Install HyperPod's Helm charts on an imported cluster that lacks them."""
        ...

    def add_nodes_role(self, role: iam.IRole) -> IDependable:
        """Let nodes with this execution role join; returns a dependency of the HyperPod cluster."""
        ...

    def install_after(self, nodes: IDependable | None) -> None:
        """Make workloads on nodes wait for them; None leaves them out."""
        ...


class EksBase(Construct):
    cluster_name: str
    cluster_arn: str
    dependencies: IDependable
    physical_name: str

    def __init__(self, scope: Construct, construct_id: str, *, cluster_name: str) -> None:
        super().__init__(scope, construct_id)
        self.cluster_name = self.physical_name = cluster_name
        self.cluster_arn = Stack.of(self).format_arn(service="eks", resource="cluster", resource_name=cluster_name)
        self.dependencies = DependencyGroup()
        self._installer: HelmInstaller | None = None

    @property
    def known_installer(self) -> "HelmInstaller | None":
        return self._installer

    @property
    def installer(self) -> "HelmInstaller":
        assert self._installer is not None, "it is made with the cluster"
        return self._installer

    def install_charts(self, instance_types: Collection[str] | None = None) -> None:
        """Nothing to do: the charts came with the cluster."""

    def add_nodes_role(self, role: iam.IRole) -> IDependable:
        """
        Let nodes with this execution role join; returns a dependency of the HyperPod cluster.

        The entry has no access policy: its type gives the rights of a node. The role must not be the role of EKS nodes
        (SageMaker developer guide, "Getting started with Amazon EKS support in SageMaker HyperPod").
        """
        return eks.CfnAccessEntry(
            self._place(role) if iam.Role.is_role(role) else self,
            f"Nodes{role.node.addr[-8:]}",
            cluster_name=self.cluster_name,
            principal_arn=role.role_arn,
            type="HYPERPOD_LINUX",
        )

    def install_after(self, nodes: IDependable | None) -> None:
        """Nothing to do for an imported cluster."""

    def grant_access(
        self, role: iam.IRole, *, policy: AccessPolicy, namespaces: Sequence[str] | None = None
    ) -> IDependable:
        """Allow ``role`` to use the Kubernetes API, in all ``namespaces`` by default. EKS allows one entry per role."""
        scope = eks.CfnAccessEntry.AccessScopeProperty(
            type="namespace" if namespaces else "cluster", namespaces=list(namespaces) if namespaces else None
        )
        arn = Stack.of(self).format_arn(
            service="eks",
            region="",
            account="aws",
            resource="cluster-access-policy",
            resource_name=policy,
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )
        return eks.CfnAccessEntry(
            self._place(role) if iam.Role.is_role(role) else self,
            f"Access{role.node.addr[-8:]}",
            cluster_name=self.cluster_name,
            principal_arn=role.role_arn,
            access_policies=[eks.CfnAccessEntry.AccessPolicyProperty(policy_arn=arn, access_scope=scope)],
        )

    def _place(self, beside: IConstruct) -> Construct:
        """Stack of a construct that refers to this one: two stacks cannot wait for each other."""
        stack = Stack.of(beside)
        if stack.node.path == Stack.of(self).node.path:
            return self
        found = stack.node.try_find_child(f"Eks{self.node.addr[-8:]}")
        return found if isinstance(found, Construct) else Construct(stack, f"Eks{self.node.addr[-8:]}")
