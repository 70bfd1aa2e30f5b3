"""Helm charts of HyperPod on EKS, pinned by commit and digest; data in the JSON."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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
