"""3xx: add-ons as resources of a template: names, versions, roles and configuration."""

import json
import re
from collections.abc import Iterator

from holdfast.catalog.facts import page_fact
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.iam import grants_in, principals, role_of
from holdfast.validation.model import App, Deployment
from holdfast.validation.rules.eks.lookups import ADDON, ADDONS, cluster_of
from holdfast_common import closest_word

POD_IDENTITY = "EKS user guide, 'Learn how EKS Pod Identity grants pods access to AWS services'"
_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)-eksbuild\.(\d+)")


@rule("HF332", title="EKS add-ons have names that exist", each=App, source=ADDONS, suppressible=True)
def addon_names(app: App, _: Deployment) -> Iterator[Broken]:
    """EKS refuses an add-on of another name. One that has come since the list was made can be accepted."""
    known = set(page_fact("eks_addons"))
    for _addon, node in app.each(ADDON):
        name = node.get("AddonName")
        if isinstance(name.value, str) and name.value not in known and (meant := closest_word(name.value, known)):
            yield refused(name.path, show(name.value), allowed="add-ons of EKS", fix=f"did you mean {meant}?")


@rule(
    "HF333",
    title="Versions of EKS add-ons support the cluster's Kubernetes version",
    each=App,
    source=f"{ADDONS}; Kubernetes, 'Version skew policy'",
)
def addon_versions(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A version is written vMAJOR.MINOR.PATCH-eksbuild.N. That of kube-proxy is the Kubernetes version: never newer than
    the control plane, and at most three minors older.
    """
    for _addon, node in app.each(ADDON):
        version = node.get("AddonVersion")
        if not isinstance(version.value, str):
            continue
        match = _VERSION.fullmatch(version.value)
        if match is None:
            yield refused(
                version.path,
                show(version.value),
                allowed="vMAJOR.MINOR.PATCH-eksbuild.N",
                fix=_as_version(version.value),
            )
            continue
        cluster = cluster_of(app, node)
        kubernetes = app.node(cluster).get("Version").text() if cluster is not None else None
        if (
            node.get("AddonName").value == "kube-proxy"
            and isinstance(kubernetes, str)
            and re.fullmatch(r"1\.\d+", kubernetes)
        ):
            behind = int(kubernetes.partition(".")[2]) - int(match[2])
            if not 0 <= behind <= 3:
                yield refused(
                    version.path,
                    f"kube-proxy {match[1]}.{match[2]} with Kubernetes {kubernetes}",
                    allowed=f"kube-proxy of {kubernetes}",
                    fix=f"take the version for {kubernetes}, or leave AddonVersion out",
                )


@rule(
    "HF334",
    title="Pod identity associations have the Pod Identity Agent",
    each=App,
    source=f"{POD_IDENTITY}, 'Set up the Amazon EKS Pod Identity Agent'",
)
def pod_identity_agent(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A pod identity association does nothing where the add-on eks-pod-identity-agent does not run: pods get no
    credentials.
    """
    addons = list(app.each(ADDON))
    names = [node.get("AddonName").text() for _addon, node in addons]
    if not all(isinstance(name, str) for name in names) or not app.complete or "eks-pod-identity-agent" in names:
        return
    users = [resource for resource, _node in app.each("AWS::EKS::PodIdentityAssociation")]
    users += [resource for resource, node in addons if node.get("PodIdentityAssociations").present]
    for resource in users:
        cluster = cluster_of(app, app.node(resource))
        if (
            cluster is not None
            and cluster.template is resource.template
            and not app.node(cluster).get("ComputeConfig", "Enabled").present
        ):
            yield refused(
                resource.path,
                "pod identity without its agent",
                allowed="the add-on eks-pod-identity-agent beside it",
                fix="add the add-on eks-pod-identity-agent",
            )


@rule(
    "HF335",
    title="Add-ons get their role in the way that its trust policy allows",
    each=App,
    source=f"{POD_IDENTITY}; EKS user guide, 'IAM roles for service accounts'",
)
def addon_roles(app: App, _: Deployment) -> Iterator[Broken]:
    """
    ServiceAccountRoleArn is for roles that trust the cluster's OIDC provider; PodIdentityAssociations for those that
    trust pods.eks.amazonaws.com. An add-on takes one of them.
    """
    for addon, node in app.each(ADDON):
        role = role_of(node.get("ServiceAccountRoleArn"))
        if node.get("ServiceAccountRoleArn").present and node.get("PodIdentityAssociations").present:
            yield refused(
                f"{addon.path}.ServiceAccountRoleArn",
                "a service account role and pod identity",
                allowed="one of the two",
                fix="keep one of them",
            )
        if role is None:
            continue
        grants = grants_in(app.node(role).get("AssumeRolePolicyDocument"))
        if grants and not any(
            principals(grant, "Federated") or not grant.node.get("Principal").known for grant in grants
        ):
            yield refused(
                f"{addon.path}.ServiceAccountRoleArn",
                f"{role.logical_id}, which trusts no OIDC provider",
                allowed="a role that trusts that of the cluster",
                fix=f"give {role.logical_id} through PodIdentityAssociations, or trust the OIDC provider",
            )


@rule(
    "HF336",
    title="Configuration of add-ons is JSON or YAML",
    each=App,
    source="EKS user guide, 'Determine fields you can customize for Amazon EKS add-ons'",
)
def addon_configuration(app: App, _: Deployment) -> Iterator[Broken]:
    """ConfigurationValues is one text with a JSON or YAML mapping in it."""
    for _addon, node in app.each(ADDON):
        values = node.get("ConfigurationValues")
        if isinstance(values.value, str) and values.value.strip().startswith(("{", "[")):
            try:
                ok = isinstance(json.loads(values.value), dict)
            except ValueError:
                ok = False
            if not ok:
                yield refused(
                    values.path,
                    "text that is not a JSON object",
                    allowed="a JSON or YAML mapping",
                    fix="correct the JSON: check quotes, commas and braces",
                )


def _as_version(text: str) -> str:
    numbers = re.match(r"v?(\d+\.\d+(?:\.\d+)?)", text)
    return (
        f"write v{numbers[1]}{'.0' * (2 - numbers[1].count('.'))}-eksbuild.1, or leave it out"
        if numbers
        else "leave it out"
    )
