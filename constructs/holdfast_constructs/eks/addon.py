"""EKS add-ons, and roles of their pods."""

from collections.abc import Mapping, Sequence

from aws_cdk import Stack
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from holdfast.catalog import eks_addons
from holdfast_constructs.cdk import json_text
from holdfast_constructs.eks.base import IHyperPodEks


class PodIdentity(Construct):
    """
    Role of one service account, in one namespace of one cluster, through EKS Pod Identity.

    The trust names all three (Amazon EKS user guide, "Create IAM role with trust policy required by EKS Pod Identity"),
    so other associations get nothing from the role.
    """

    role: iam.Role
    resource: eks.CfnPodIdentityAssociation

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster: IHyperPodEks,
        namespace: str,
        service_account: str,
        statements: Sequence[iam.PolicyStatement],
    ) -> None:
        """Define a role and its association; ``statements`` are its rights."""
        super().__init__(scope, construct_id)
        pods = iam.ServicePrincipal(
            "pods.eks.amazonaws.com",
            conditions={
                "StringEquals": {
                    "aws:SourceAccount": Stack.of(self).account,
                    "aws:RequestTag/kubernetes-namespace": namespace,
                    "aws:RequestTag/kubernetes-service-account": service_account,
                },
                "ArnEquals": {"aws:SourceArn": eks_cluster.cluster_arn},
            },
        )
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.SessionTagsPrincipal(pods),
            description=f"Pods of {namespace}/{service_account}",
            # In the role itself: pods that start with the association have every permission at once.
            inline_policies={"Pods": iam.PolicyDocument(statements=list(statements))},
        )
        self.resource = eks.CfnPodIdentityAssociation(
            self,
            "Resource",
            cluster_name=eks_cluster.cluster_name,
            namespace=namespace,
            service_account=service_account,
            role_arn=self.role.role_arn,
        )


class EksAddon(Construct):
    resource: eks.CfnAddon

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster: IHyperPodEks,
        name: str,
        version: str | None = None,
        configuration: Mapping[str, object] | None = None,
        after: Sequence[IDependable] = (),
    ) -> None:
        """
        Define an add-on; manual changes of its resources are overwritten.

        Args:
            name: One of ``eks_addons()`` of the catalog.
            version: Such as ``v1.18.3-eksbuild.1``. Default: the catalog's, or else EKS's for the Kubernetes version.
            configuration: Default: the add-on's own.
            after: Dependencies, such as the association of its pods with a role. Name resources, not constructs that
                contain this add-on.
        """
        super().__init__(scope, construct_id)
        addon = eks_addons()[name]
        if version is not None and not addon.accepts(version):
            raise ValueError(
                f"add-on {name}: got version '{version}'; allowed: {addon.minimum_version} or later ({addon.source})"
            )
        self.resource = eks.CfnAddon(
            self,
            "Resource",
            addon_name=name,
            cluster_name=eks_cluster.cluster_name,
            addon_version=version or addon.version,
            configuration_values=None if configuration is None else json_text(self, dict(configuration)),
            resolve_conflicts="OVERWRITE",
        )
        if after:
            self.resource.node.add_dependency(*after)
