"""Helm charts of a HyperPod cluster, and values that place their pods."""

from collections.abc import Collection, Mapping

from aws_cdk import Annotations, Stack
from constructs import Construct

from holdfast.catalog import (
    charts,
    charts_for,
    eks_image_account,
    health_monitoring_agent_regions,
    instance_types,
    nvidia_device_plugin_mirror,
)
from holdfast_constructs.cdk import has_token, is_commercial
from holdfast_constructs.eks.helm import HelmInstaller, HelmRelease

INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
TOLERATE_UNHEALTHY: Mapping[str, str] = {
    "key": "sagemaker.amazonaws.com/node-health-status",
    "operator": "Equal",
    "value": "Unschedulable",
    "effect": "NoSchedule",
}
"""HyperPod taints a node while it checks it, through its device plugins (hyperpod-cli, helm_chart/readme.md)."""


def releases(
    scope: Construct, *, installer: HelmInstaller, types: Collection[str] | None, closed: bool = False
) -> list[HelmRelease]:
    """
    All releases needed before the HyperPod cluster.

    Args:
        scope: Parent of the releases, named as their charts.
        types: Possible instance types; None for any.
        closed: Images come only through AWS endpoints.
    """
    made: dict[str, HelmRelease] = {}
    for name, values in chart_values(types, region=_region(scope), closed=closed).items():
        after = [next(iter(made.values())).resource] if made else []
        made[name] = HelmRelease(
            scope, name, installer=installer, chart=charts()[name], values=values, wait=False, after=after
        )
    return list(made.values())


def chart_values(types: Collection[str] | None, *, region: str, closed: bool = False) -> dict[str, dict[str, object]]:
    """
    Charts to install, with their values; the first one precedes the others.

    A device plugin is installed if a type of the cluster has its device, and runs on all such types of the catalog, so
    a new group changes no release. Instance types have their SageMaker names, as nodes do.

    Args:
        types: Possible instance types; None for any.
        region: Of image registries; may be a token.
        closed: Images come only through AWS endpoints. Raises ValueError if an image is unavailable then.
    """
    catalog = instance_types()
    chosen: dict[str, dict[str, object]] = {}
    for name in charts_for(catalog.values() if types is None else [catalog[each] for each in types]):
        match name:
            case "health-monitoring-agent":
                chosen[name] = {"region": region, "debug": False}
            case "nvidia-device-plugin":
                gpus = [each for each, facts in catalog.items() if facts.accelerators and not facts.has_neuron]
                chosen[name] = {**_nvidia_values(gpus), **(_nvidia_mirror(region) if closed else {})}
            case "neuron-device-plugin" if closed and types is not None:
                raise ValueError(
                    "closed network: got instance types with Neuron devices, whose device plugin comes from "
                    "public.ecr.aws by a name that its chart has fixed; allowed: other types, or a network with a way "
                    "out"
                )
            case "aws-efa-k8s-device-plugin":
                chosen[name] = _efa_values([each for each, facts in catalog.items() if facts.efa_interfaces], region)
            case _:
                chosen[name] = {}
    return chosen


def _nvidia_values(types: list[str]) -> dict[str, object]:
    expression = {"key": INSTANCE_TYPE_LABEL, "operator": "In", "values": types}
    return {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [expression]}]
                }
            }
        },
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            dict(TOLERATE_UNHEALTHY),
        ],
    }


def _nvidia_mirror(region: str) -> dict[str, object]:
    """AWS's copy in the region, for nodes that cannot reach nvcr.io."""
    mirror = None if has_token(region) else nvidia_device_plugin_mirror(region)
    if mirror is None:
        given = "a stack without a region" if has_token(region) else region
        raise ValueError(
            f"closed network: got {given}, where AWS has no copy of NVIDIA's device plugin; allowed: a region that has "
            "one, or a network with a way out"
        )
    repository, tag = mirror
    return {"image": {"repository": repository, "tag": tag}}


def _efa_values(types: list[str], region: str) -> dict[str, object]:
    values: dict[str, object] = {
        "supportedInstanceLabels": {"keys": [INSTANCE_TYPE_LABEL], "values": types},
        "tolerations": [
            {"key": "aws.amazon.com/efa", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            dict(TOLERATE_UNHEALTHY),
        ],
    }
    # Otherwise the chart's own: us-west-2, which a closed network cannot reach.
    if not has_token(region) and is_commercial(region):
        registry = f"{eks_image_account(region)}.dkr.ecr.{region}.amazonaws.com"
        values["image"] = {"repository": f"{registry}/eks/aws-efa-k8s-device-plugin"}
    return values


def _region(scope: Construct) -> str:
    region = Stack.of(scope).region
    known = health_monitoring_agent_regions()
    if not has_token(region) and region not in known:
        Annotations.of(scope).add_warning_v2(
            "holdfast:health-monitoring-agent-region",
            f"the health monitoring agent has no image in {region}, so its chart takes the image of us-east-1; "
            f"allowed: {', '.join(known)}",
        )
    return region
