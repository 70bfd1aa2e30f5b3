"""3xx: the Kubernetes version of a cluster."""

from collections.abc import Iterator

from holdfast.catalog import kubernetes_versions
from holdfast.catalog.facts import facts_date, kubernetes_support
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.model import App, Deployment, EnvironmentFile
from holdfast.validation.rules.eks.lookups import CLUSTER

SUPPORT = "EKS user guide, 'Understand the Kubernetes version lifecycle on EKS'"


@rule(
    "HF330",
    title="The Kubernetes version is one that EKS can still create",
    each=(EnvironmentFile, App),
    source=SUPPORT,
)
def version_exists(item: EnvironmentFile | App, deployment: Deployment) -> Iterator[Broken]:
    """
    At the end of extended support EKS makes no cluster of a version any more, and updates those that there are by
    itself.
    """
    today = deployment.today or facts_date()
    for path, version in _versions(item):
        known = kubernetes_support().get(version)
        if version in kubernetes_versions() and known is not None and known.extended_until < today:
            yield refused(
                path,
                f"{version}, whose extended support ended on {known.extended_until}",
                allowed=f"{', '.join(_supported(deployment))}",
                fix=f'write "{_newest_standard(deployment)}"',
            )


@rule(
    "HF331",
    severity="warning",
    title="The Kubernetes version is in standard support",
    each=(EnvironmentFile, App),
    source=SUPPORT,
)
def version_is_supported(item: EnvironmentFile | App, deployment: Deployment) -> Iterator[Broken]:
    """
    After the end of standard support a cluster costs several times as much per hour, and a year later EKS updates it by
    itself.
    """
    today = deployment.today or facts_date()
    for path, version in _versions(item):
        known = kubernetes_support().get(version)
        if known is not None and known.standard_until < today <= known.extended_until:
            yield Broken(
                path=path,
                message=f"standard support of {version} ended on {known.standard_until}; "
                f"it costs more until {known.extended_until}, and EKS then updates it by itself",
                fix=f'write "{_newest_standard(deployment)}", as far as what runs there takes it',
            )


def _versions(item: EnvironmentFile | App) -> Iterator[tuple[str, str]]:
    if isinstance(item, EnvironmentFile):
        eks = item.data.get("eks")
        version = eks.get("kubernetes_version") if isinstance(eks, dict) else None
        if isinstance(version, str) and item.cloud == "aws":
            yield "eks.kubernetes_version", version
        return
    for _cluster, node in item.each(CLUSTER):
        version = node.get("Version").text()
        if isinstance(version, str):
            yield node.get("Version").path, version


def _supported(deployment: Deployment) -> list[str]:
    today = deployment.today or facts_date()
    return [version for version, each in kubernetes_support().items() if each.released <= today <= each.extended_until]


def _newest_standard(deployment: Deployment) -> str:
    today = deployment.today or facts_date()
    good = [version for version, each in kubernetes_support().items() if each.released <= today <= each.standard_until]
    taken = [version for version in good if version in kubernetes_versions()]
    return (taken or good or ["1.35"])[-1]
