"""Kubernetes on HyperPod: versions, EKS add-ons, image registries; data and sources in the JSON."""

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KUBERNETES_FILE = Path(__file__).with_name("kubernetes.json")


@dataclass(frozen=True, kw_only=True)
class Addon:
    name: str
    source: str
    date: str
    """When the source was read or written, ISO 8601."""
    version: str | None = None
    """Default: none, no source names one, and EKS takes its default for the Kubernetes version."""
    minimum_version: str | None = None
    """Default: none is known."""

    def accepts(self, version: str) -> bool:
        """Return True if a version such as ``v1.18.3-eksbuild.1`` is at least the minimum."""
        return self.minimum_version is None or _numbers(version) >= _numbers(self.minimum_version)


def kubernetes_versions() -> tuple[str, ...]:
    """Kubernetes versions of HyperPod, oldest first."""
    return tuple(_data()["kubernetes_versions"]["values"])


@functools.cache
def eks_addons() -> Mapping[str, Addon]:
    return {name: Addon(name=name, **facts) for name, facts in _data()["addons"].items()}


def health_monitoring_agent_regions() -> tuple[str, ...]:
    return tuple(_data()["health_monitoring_agent_regions"]["values"])


def eks_image_account(region: str) -> str:
    accounts = _data()["eks_image_accounts"]
    return str(accounts["values"].get(region, accounts["default"]))


def nvidia_device_plugin_mirror(region: str) -> tuple[str, str] | None:
    """Repository and tag of AWS's mirror of NVIDIA's device plugin; None without one."""
    mirrors = _data()["nvidia_device_plugin_mirrors"]
    account = mirrors["values"].get(region)
    if account is None:
        return None
    return f"{account}.dkr.ecr.{region}.amazonaws.com/{mirrors['repository']}", mirrors["tag"]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


@functools.cache
def _data() -> dict[str, Any]:
    return dict(json.loads(KUBERNETES_FILE.read_text()))
