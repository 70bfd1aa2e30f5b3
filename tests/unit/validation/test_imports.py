"""A file remembers what its cluster was like, and check says when that has changed."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.importing import from_observed, render
from holdfast.validation import UNRESOLVED, Finding
from holdfast.validation.from_environment import check
from holdfast.validation.imports import Origin, origin_of, read_origin

EXAMPLES = Path(__file__).parents[3] / "holdfast" / "validation" / "examples"
ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
GROUP = {"InstanceGroupName": "workers", "InstanceType": "ml.g5.8xlarge", "TargetCount": 2, "CurrentCount": 2}
CLUSTER: dict[str, Any] = {
    "ClusterArn": ARN,
    "ClusterName": "mine",
    "ClusterStatus": "InService",
    "InstanceGroups": [GROUP, {**GROUP, "InstanceGroupName": "head"}],
    "NodeRecovery": "Automatic",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that was imported when the cluster was as above."""
    path = tmp_path / "mine.yaml"
    path.write_text(f"# Imported.\n# As it was: {origin_of(CLUSTER)}\n" + (EXAMPLES / "slurm.yaml").read_text())
    return path


def found(path: Path, described: Any) -> list[Finding]:
    report = check(path, facts=lambda deployment: deployment, describe=lambda arn: {ARN: described}[arn])
    return [finding for finding in report.findings if finding.code == "HF930"]


def changed(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(CLUSTER), **changes}


def group(name: str, **changes: Any) -> dict[str, Any]:
    return {**GROUP, "InstanceGroupName": name, **changes}


@pytest.mark.parametrize(
    "described",
    [
        CLUSTER,
        changed(ClusterStatus="Updating", FailureMessage="x", ResponseMetadata={}),
        changed(InstanceGroups=[group("workers", CurrentCount=1, Status="Updating"), group("head")]),
        None,
    ],
    ids=["as it was", "another state", "a node is being replaced", "deleted"],
)
def test_a_cluster_that_nobody_changed_is_no_finding(described: Mapping[str, Any] | None, path: Path) -> None:
    assert found(path, described) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"InstanceGroups": [group("workers", TargetCount=4), group("head")]}, "group workers"),
        ({"InstanceGroups": [group("head")]}, "group workers was removed"),
        ({"InstanceGroups": [group("workers"), group("head"), group("more")]}, "group more is new"),
        ({"NodeRecovery": "None"}, "the cluster's own settings"),
    ],
)
def test_a_cluster_that_changed_since_is_one_finding(changes: dict[str, Any], words: str, path: Path) -> None:
    [finding] = found(path, changed(**changes))

    assert (finding.severity, finding.line) == ("warning", 2)
    assert finding.message == f"cluster mine has changed since it was imported: {words}"


def test_what_nobody_could_ask_is_not_checked(path: Path) -> None:
    [refused] = found(path, UNRESOLVED)
    [offline] = [finding for finding in check(path).findings if finding.code == "HF930"]

    assert refused.severity == offline.severity == "not-checked"


def test_a_file_that_was_not_imported_has_nothing_to_compare(tmp_path: Path) -> None:
    path = tmp_path / "slurm.yaml"
    path.write_text("# As it was: fine\n" + (EXAMPLES / "slurm.yaml").read_text())

    assert [finding for finding in check(path).findings if finding.code == "HF930"] == []


@pytest.mark.parametrize("text", ["", "fine", "arn:aws:x", f"{ARN} workers", f"{ARN} workers="])
def test_other_comments_are_no_origin(text: str) -> None:
    assert read_origin(text) is None


def test_an_origin_of_many_groups_is_read_back_from_the_file(tmp_path: Path) -> None:
    groups = [group(f"group-{number}", InstanceCount=1) for number in range(40)]
    observed = changed(
        InstanceGroups=[{**each, "ExecutionRole": "arn:aws:iam::111122223333:role/x"} for each in groups]
    )
    path = tmp_path / "imported.yaml"
    path.write_text(render(_imported(observed), origin="the test"))

    [(line, text)] = _document(path).as_it_was.items()

    assert read_origin(text) == origin_of(observed)
    assert isinstance(read_origin(text), Origin)
    assert max(map(len, path.read_text().splitlines())) <= 120
    assert yaml.safe_load(path.read_text())["name"] == "mine"
    assert line == 2


def _imported(described: dict[str, Any]) -> Any:
    from holdfast.importing import ObservedCluster

    return from_observed(
        ObservedCluster(region="us-west-2", account="111122223333", embedded=False, cluster=described, tags={})
    )


def _document(path: Path) -> Any:
    from holdfast.config.reading import read

    return read(path)
