"""Objects of an add-on, from its manifest and the cluster."""

import functools
import ipaddress
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import yaml

from holdfast.catalog import eks_image_account, instance_types

HERE = Path(__file__).parent
DNS_HOST = 10
"""Of the cluster's services: EKS user guide, managing-coredns, "10.100.0.10 or 172.20.0.10"."""

Object = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Facts:
    region: str
    version: str
    """Of the add-on, such as v1.12.2-eksbuild.4."""
    services: str
    """The block of addresses of the cluster's services, such as 172.20.0.0/16."""


def stand_in(name: str) -> str:
    return str(_stand_ins().get(name, ""))


def objects(name: str, facts: Facts) -> list[Object]:
    """Return the objects of an add-on in creation order; none if its work is done outside of pods."""
    manifest = HERE / "manifests" / f"{name}.yaml"
    if not stand_in(name) or not manifest.is_file():
        return []
    facts_by_name = {
        "region": facts.region,
        "version": facts.version,
        "registry": f"{eks_image_account(facts.region)}.dkr.ecr.{facts.region}.amazonaws.com",
        "dns_address": str(ipaddress.ip_network(facts.services)[DNS_HOST]),
    }
    text = Template(manifest.read_text()).substitute(facts_by_name)
    return [one for one in yaml.safe_load_all(text) if one]


def release_objects(name: str, *, namespace: str, values: Mapping[str, Any]) -> list[Object]:
    """Return objects in place of a chart that cannot be downloaded; empty if nothing needs it. Raises: KeyError."""
    manifest = HERE / "manifests" / "releases" / f"{name}.yaml"
    if not manifest.is_file():
        return []
    types = instance_types().values()
    facts_by_name = {
        "namespace": namespace,
        "gpu_types": " ".join(sorted(one.name for one in types if one.accelerators and not one.has_neuron)),
        "neuron_types": " ".join(sorted(one.name for one in types if one.accelerators and one.has_neuron)),
        "efa_types": " ".join(sorted(one.name for one in types if one.efa_interfaces)),
        **dict(_flat(values)),
    }
    # Values are data: each is put in as JSON has it within quotes, so that none becomes part of the manifest.
    quoted = {key: json.dumps(value)[1:-1] for key, value in facts_by_name.items()}
    quoted |= {key: value.replace(" ", ", ") for key, value in quoted.items() if key.endswith("_types")}
    return [one for one in yaml.safe_load_all(Template(manifest.read_text()).substitute(quoted)) if one]


def _flat(values: Mapping[str, Any], *, above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, above=f"{above}{key}_")
        else:
            yield f"{above}{key}", str(value)


def images(name: str, facts: Facts) -> list[str]:
    """Return the images of an add-on's pods, for which nodes need stand-ins."""
    pods = [one["spec"]["template"]["spec"] for one in objects(name, facts) if "template" in one.get("spec", {})]
    return [container["image"] for pod in pods for container in pod["containers"]]


@functools.cache
def _stand_ins() -> dict[str, str]:
    found: dict[str, str] = json.loads((HERE / "stand_ins.json").read_text())["stand_ins"]
    return found
