"""What the catalog knows about Kubernetes: every entry says where it is from, and pins are pins."""

import json
import re
from pathlib import Path

import pytest

from holdfast.catalog import (
    KUBERNETES_FILE,
    Addon,
    charts,
    eks_addons,
    eks_image_account,
    health_monitoring_agent_regions,
    kubernetes_versions,
)


def test_hyperpod_accepts_these_kubernetes_versions() -> None:
    assert kubernetes_versions() == ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35")


def test_every_entry_has_a_source_and_a_date() -> None:
    data = json.loads(KUBERNETES_FILE.read_text())
    entries = [*data["addons"].values(), *(entry for name, entry in data.items() if name != "addons")]

    assert [entry for entry in entries if not entry["source"]] == []
    assert [entry for entry in entries if not re.fullmatch(r"\d{4}-\d\d-\d\d", entry["date"])] == []


def test_an_add_on_without_a_version_says_that_it_is_not_pinned() -> None:
    for addon in eks_addons().values():
        assert (addon.version is None) == (("not pinned" in addon.source) or ("default of EKS" in addon.source))


@pytest.mark.parametrize(
    ("version", "accepted"),
    [("v1.18.3-eksbuild.1", True), ("v1.19.0-eksbuild.1", True), ("v1.18.2-eksbuild.9", False), ("v1.9.9", False)],
)
def test_versions_are_compared_as_numbers(version: str, accepted: bool) -> None:
    assert eks_addons()["vpc-cni"].accepts(version) is accepted
    assert Addon(name="a", source="s", date="d").accepts(version)


def test_a_chart_is_pinned_by_commit_and_digest() -> None:
    for chart in charts().values():
        assert re.fullmatch(r"[0-9a-f]{40}", chart.commit), chart.name
        assert re.fullmatch(r"[0-9a-f]{64}", chart.tree_sha256), chart.name
        assert chart.path == str(Path(chart.path))
        assert chart.licence == "Apache-2.0"


def test_images_of_eks_have_an_account_in_every_region_of_the_health_monitoring_agent() -> None:
    assert len(health_monitoring_agent_regions()) == 17
    assert eks_image_account("us-west-2") == "602401143452"
    assert eks_image_account("eu-south-2") == "455263428931"
