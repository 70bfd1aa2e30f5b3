"""Which objects an add-on is made of, from its manifest and the cluster that it comes into."""

import functools
import ipaddress
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import yaml

from holdfast.catalog import InstanceType, eks_image_account, instance_types

HERE = Path(__file__).parent
DNS_HOST = 10
"""Of the cluster's services: EKS user guide, managing-coredns, "10.100.0.10 or 172.20.0.10"."""

Object = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What an add-on's objects follow from."""

    region: str
    version: str
    """Of the add-on, such as v1.12.2-eksbuild.4."""
    services: str
    """The block of addresses of the cluster's services, such as 172.20.0.0/16."""


def stand_in(name: str) -> str:
    """What does an add-on's work here; "" where nothing does."""
    return str(_stand_ins().get(name, ""))


def objects(name: str, facts: Facts) -> list[Object]:
    """The objects of an add-on, in the order in which they are made; none where its work is done outside of pods."""
    manifest = HERE / "manifests" / f"{name}.yaml"
    if not stand_in(name) or not manifest.is_file():
        return []
    told = {
        "region": facts.region,
        "version": facts.version,
        "registry": f"{eks_image_account(facts.region)}.dkr.ecr.{facts.region}.amazonaws.com",
        "dns_address": str(ipaddress.ip_network(facts.services)[DNS_HOST]),
    }
    text = Template(manifest.read_text()).substitute(told)
    return [one for one in yaml.safe_load_all(text) if one]


def release_objects(name: str, *, namespace: str, values: Mapping[str, Any]) -> list[Object]:
    """
    What takes the place of a chart whose archive is not to be had; nothing where nobody depends on the chart here.

    Args:
        name: Of the chart.
        values: Of the release.

    Raises:
        KeyError: a value is missing that the objects need.
    """
    manifest = HERE / "manifests" / "releases" / f"{name}.yaml"
    if not manifest.is_file():
        return []
    types = instance_types().values()
    told = {
        "namespace": namespace,
        "gpu_types": " ".join(sorted(one.name for one in types if one.accelerators and not _is_neuron(one))),
        "neuron_types": " ".join(sorted(one.name for one in types if one.accelerators and _is_neuron(one))),
        "efa_types": " ".join(sorted(one.name for one in types if one.efa_interfaces)),
        **dict(_flat(values)),
    }
    # Values are data: each is put in as JSON has it within quotes, so that none becomes part of the manifest.
    quoted = {key: json.dumps(value)[1:-1] for key, value in told.items()}
    quoted |= {key: value.replace(" ", ", ") for key, value in quoted.items() if key.endswith("_types")}
    return [one for one in yaml.safe_load_all(Template(manifest.read_text()).substitute(quoted)) if one]


def _is_neuron(kind: InstanceType) -> bool:
    return kind.accelerator.startswith(("Trainium", "Inferentia"))


def _flat(values: Mapping[str, Any], *, above: str = "") -> Iterator[tuple[str, str]]:
    """Each value with its path, as persistentVolume_csi_volumeHandle."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, above=f"{above}{key}_")
        else:
            yield f"{above}{key}", str(value)


def images(name: str, facts: Facts) -> list[str]:
    """Images of an add-on's pods, which something on the nodes must stand in for."""
    pods = [one["spec"]["template"]["spec"] for one in objects(name, facts) if "template" in one.get("spec", {})]
    return [container["image"] for pod in pods for container in pod["containers"]]


@functools.cache
def _stand_ins() -> dict[str, str]:
    found: dict[str, str] = json.loads((HERE / "stand_ins.json").read_text())["stand_ins"]
    return found
