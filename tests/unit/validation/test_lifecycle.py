"""What rules say of lifecycle modes, in environment files and in templates."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.validation import Finding
from holdfast.validation.pages import EXAMPLES, Example, findings_of

GROUPS = "Resources.Cluster.Properties.InstanceGroups"
CONTINUOUS = {
    "Resources.Cluster.Properties.NodeProvisioningMode": "Continuous",
    "Resources.Cluster.Properties.Orchestrator.Slurm.SlurmConfigStrategy": None,
}
URI = "s3://sagemaker-example/lifecycle/3f2a9c41"
EXTENSION = {"SourceS3Uri": URI, "OnInitComplete": "on_init_complete.sh"}


def told(base: str, changes: dict[str, Any], folder: Path) -> dict[str, set[str]]:
    """The codes that are found, each with its places."""
    found: dict[str, set[str]] = {}
    for finding in findings_of(Example(base=base, changes=changes), folder=folder):
        if finding.severity != "not-checked":
            found.setdefault(finding.code, set()).add(place(finding))
    return found


def place(finding: Finding) -> str:
    return finding.path.partition("#")[2] or finding.path


@pytest.mark.parametrize("mode", ["extension", "custom"])
def test_slurm_takes_both_modes_that_have_scripts(mode: str, tmp_path: Path) -> None:
    assert told("slurm.yaml", {"lifecycle.mode": mode}, tmp_path) == {}


def test_slurm_takes_no_scripts_where_nobody_is_to_have_an_account(tmp_path: Path) -> None:
    assert told("slurm.yaml", {"lifecycle": {"mode": "none"}}, tmp_path) == {}


def test_accounts_that_do_not_reach_a_group_are_told_at_its_own_mode(tmp_path: Path) -> None:
    changes = {"lifecycle.mode": "none", "cluster.instance_groups.1.lifecycle_mode": "extension"}

    assert told("slurm.yaml", changes, tmp_path) == {"HF523": {"lifecycle.mode"}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"lifecycle.mode": "extension"}, {"HF519": {"lifecycle.mode"}}),
        ({"lifecycle.mode": "none"}, {"HF501": {"lifecycle.mode"}}),
        ({"lifecycle.mode": "custom"}, {}),
        ({"cluster.instance_groups.0.lifecycle_mode": "none"}, {"HF501": {"cluster.instance_groups.0.lifecycle_mode"}}),
        (
            {"cluster.instance_groups.1.lifecycle_mode": "extension"},
            {"HF519": {"cluster.instance_groups.1.lifecycle_mode"}},
        ),
    ],
)
def test_eks_takes_custom_alone(changes: dict[str, Any], expected: dict[str, set[str]], tmp_path: Path) -> None:
    assert told("eks.yaml", changes, tmp_path) == expected


def test_every_way_to_say_a_lifecycle_wrong_in_a_template_has_its_finding(tmp_path: Path) -> None:
    def codes(lifecycle: object) -> set[str]:
        return set(told("slurm.template.json", {f"{GROUPS}.1.LifeCycleConfig": lifecycle}, tmp_path))

    assert codes(None) == set()
    assert codes(EXTENSION) == set()
    assert codes({}) == {"HF521"}
    assert codes({"SourceS3Uri": URI}) == {"HF503"}
    assert codes({"OnInitComplete": "on_init_complete.sh"}) == {"HF503"}
    assert codes({**EXTENSION, "OnCreate": "on_create.sh"}) == {"HF520"}


@pytest.mark.parametrize("lifecycle", [None, EXTENSION])
def test_slurm_with_continuous_provisioning_takes_every_mode(lifecycle: dict[str, str] | None, tmp_path: Path) -> None:
    changes = {**CONTINUOUS, f"{GROUPS}.0.LifeCycleConfig": lifecycle}

    assert told("slurm.template.json", changes, tmp_path) == {}


@pytest.mark.parametrize(("mode", "expected"), [("custom", {}), ("extension", {"HF522"}), ("none", {"HF522", "HF523"})])
def test_an_image_of_ones_own_is_doubted_where_it_has_to_make_nodes_ready(
    mode: str, expected: set[str], tmp_path: Path
) -> None:
    group = "cluster.instance_groups.1"
    changes = {f"{group}.image_id": "ami-0123456789abcdef0", f"{group}.lifecycle_mode": mode}

    assert set(told("slurm.yaml", changes, tmp_path)) == set(expected)


def test_a_mode_that_there_is_not_is_told_once_and_hides_nothing_else(tmp_path: Path) -> None:
    good = yaml.safe_load((EXAMPLES / "slurm.yaml").read_text())
    good["lifecycle"]["mode"] = "bootstrap"
    good["cluster"]["instance_groups"][0]["slurm"]["node_type"] = "Login"

    found = findings_of(Example(base="slurm.yaml", changes={}, text=yaml.safe_dump(good)), folder=tmp_path)

    assert {(finding.code, finding.path) for finding in found} == {
        ("HF004", "lifecycle.mode"),
        ("HF403", "cluster.instance_groups"),
    }
    assert "extension" in json.dumps([finding.message for finding in found])
