"""Helm charts of HyperPod on EKS, pinned by commit and digest; data in the JSON."""

import functools
import json
import re
import tarfile
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.catalog.instances import InstanceType

CHARTS_FILE = Path(__file__).with_name("charts.json")


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart: a folder of a public GitHub repository at one commit."""

    name: str
    repository: str
    """``owner/name`` on GitHub."""
    commit: str
    commit_date: str
    path: str
    """The chart's folder in the repository."""
    version: str
    """The chart's own version."""
    tree_sha256: str
    """Digest of the folder's files, as ``holdfast_constructs.helm_installer`` computes it."""
    licence: str
    why: str
    """What the cluster needs it for."""


@functools.cache
def charts() -> Mapping[str, Chart]:
    rows = json.loads(CHARTS_FILE.read_text())["charts"]
    return {name: Chart(name=name, **row) for name, row in rows.items()}


def charts_for(types: Collection[InstanceType]) -> list[str]:
    """Names of the charts that a cluster of these types needs; the first makes the namespace of the others."""
    names = ["deep-health-check", "health-monitoring-agent", "job-auto-restart", "hyperpod-patching"]
    if any(each.accelerators and not each.has_neuron for each in types):
        names.append("nvidia-device-plugin")
    if any(each.has_neuron for each in types):
        names.append("neuron-device-plugin")
    if any(each.efa_interfaces for each in types):
        names.append("aws-efa-k8s-device-plugin")
    return names


def chart_archives(folder: Path) -> dict[str, Path]:
    """Archives in a folder, by repository: ``owner+name.tar.gz``, or with the commit, ``owner+name-COMMIT.tar.gz``."""
    found = {path: re.sub(r"(-[0-9a-f]{40})?\.tar\.gz$", "", path.name) for path in sorted(folder.glob("*+*.tar.gz"))}
    return {name.replace("+", "/", 1): path for path, name in found.items()}


def charts_in(folder: Path) -> list[str]:
    """Names of the charts in the archives of a folder: each has its repository's tree, or a chart's folder alone."""
    held = {repository: _names_in(archive) for repository, archive in chart_archives(folder).items()}
    return [
        chart.name
        for chart in charts().values()
        if any(f"/{name}".endswith(f"/{Path(chart.path).name}/Chart.yaml") for name in held.get(chart.repository, ()))
    ]


def _names_in(archive: Path) -> list[str]:
    """Names in an archive; none if it cannot be read."""
    try:
        with tarfile.open(archive, "r:gz") as found:
            return found.getnames()
    except (OSError, tarfile.TarError, EOFError, zlib.error):
        return []
