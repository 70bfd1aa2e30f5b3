"""``allow_replacement`` allows what it names and nothing else."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.config import Environment
from holdfast.updates import environment_metadata, environment_of, guard

SLURM = yaml.safe_load((Path(__file__).parents[3] / "environments/slurm-p5.yaml").read_text())


def problems(changed: dict[str, Any], *allowed: str) -> list[tuple[str, str]]:
    before = environment_of({"Metadata": environment_metadata(Environment.model_validate(SLURM))})
    after = Environment.model_validate({**SLURM, **changed, "allow_replacement": list(allowed)})
    return [(problem.severity, problem.path) for problem in guard(after, before)]


RENAMED = {"cluster": {**SLURM["cluster"], "name": "other"}}


def test_a_replacement_is_allowed_by_its_own_path() -> None:
    assert problems(RENAMED) == [("error", "cluster.name")]
    assert problems(RENAMED, "cluster.name") == []


@pytest.mark.parametrize("other", ["encryption.kms_key", "storage.lustre", "cluster.node_recovery"])
def test_the_allowance_of_another_path_allows_nothing(other: str) -> None:
    assert ("error", "cluster.name") in problems(RENAMED, other)


def test_the_allowance_of_one_of_two_replacements_leaves_the_other_refused() -> None:
    both = {**RENAMED, "encryption": {**SLURM.get("encryption", {}), "kms_key": "create"}}
    unallowed = {path for severity, path in problems(both) if severity == "error"}

    left = {path for severity, path in problems(both, "encryption.kms_key") if severity == "error"}

    assert unallowed >= {"cluster.name", "encryption.kms_key"}
    assert left == unallowed - {"encryption.kms_key"}


def test_the_allowance_of_a_part_of_a_path_is_not_that_of_the_path() -> None:
    assert ("error", "cluster.name") in problems(RENAMED, "cluster")
