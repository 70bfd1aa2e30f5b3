"""What is not known is never passed, and every rule is judged by itself."""

import datetime
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.catalog import LIMITS_FILE
from holdfast.config.reading import read
from holdfast.validation import (
    UNRESOLVED,
    Cluster,
    Deployment,
    Finding,
    InstanceGroup,
    Severity,
    UnresolvedError,
    all_rules,
    judge,
    worst_first,
)
from holdfast.validation.from_environment import deployment_in
from holdfast.validation.model import Missing
from holdfast.validation.pages import EXAMPLES


@pytest.fixture
def good() -> Deployment:
    return deployment_in(read(EXAMPLES / "slurm.yaml"), folder=EXAMPLES)


def with_group(deployment: Deployment, **changes: object) -> Deployment:
    first, second = deployment.cluster.instance_groups
    groups = (first, second.changed(**changes))
    return deployment.changed(cluster=deployment.cluster.changed(instance_groups=groups))


def codes(findings: list[Finding], severity: str) -> set[str]:
    return {finding.code for finding in findings if finding.severity == severity}


def test_reading_what_is_not_known_raises_and_names_the_place() -> None:
    group = InstanceGroup(
        path="groups.1",
        places={"name": "groups.1.Name"},
        name=UNRESOLVED,
        instance_type="ml.m5.xlarge",
        instance_count=1,
    )

    with pytest.raises(UnresolvedError) as caught:
        _ = group.name

    assert caught.value.path == "groups.1.Name"
    assert not group.is_known("name")
    assert group.is_known("instance_count")
    assert repr(group) == "InstanceGroup(groups.1)"


def test_a_copy_keeps_what_is_not_known() -> None:
    group = InstanceGroup(path="g", name=UNRESOLVED, instance_type=None, instance_count=1)

    copy = group.changed(instance_count=2)

    assert copy.instance_count == 2
    assert not copy.is_known("name")


def test_an_unknown_value_is_reported_as_not_checked_with_its_path(good: Deployment) -> None:
    found = judge(with_group(good, instance_count=UNRESOLVED))

    assert codes(found, "error") == set()
    assert {"HF105", "HF209"} <= codes(found, "not-checked")
    assert {finding.path for finding in found} == {"cluster.instance_groups.1.instance_count"}
    assert found[0].message == "A group has 0 to 6758 nodes: not checked, a value is not known before deployment"


def test_an_unknown_value_hides_nothing_in_other_groups(good: Deployment) -> None:
    first, second = good.cluster.instance_groups
    groups = (first.changed(image_release_version="1.0.0"), second.changed(image_release_version=UNRESOLVED))

    found = judge(good.changed(cluster=good.cluster.changed(instance_groups=groups)))

    assert ("HF812", "error", "cluster.instance_groups.0.image_release_version") in {
        (finding.code, finding.severity, finding.path) for finding in found
    }
    assert ("HF812", "not-checked", "cluster.instance_groups.1.image_release_version") in {
        (finding.code, finding.severity, finding.path) for finding in found
    }


def test_unknown_groups_leave_every_rule_about_groups_and_what_is_in_them_unchecked(good: Deployment) -> None:
    found = judge(good.changed(cluster=good.cluster.changed(instance_groups=UNRESOLVED)))

    about_groups = {"HF105", "HF106", "HF406", "HF601", "HF604", "HF710", "HF504"}
    assert about_groups <= codes(found, "not-checked")
    assert codes(found, "error") == set()


def test_a_walk_finds_shared_items_once_and_what_is_missing(good: Deployment) -> None:
    assert good.cluster.vpc is not None
    parts = list(good.walk())

    assert len({id(part) for part in parts}) == len(parts)
    assert good.cluster.vpc.subnets[0] in parts
    broken = with_group(good, taints=UNRESOLVED)
    assert [part.path for part in broken.walk() if isinstance(part, Missing)] == ["cluster.instance_groups.1.taints"]


def test_what_was_found_before_a_value_turned_out_unknown_is_kept(good: Deployment) -> None:
    first, second = good.cluster.instance_groups
    third = second.changed(name=UNRESOLVED)

    found = judge(good.changed(cluster=good.cluster.changed(instance_groups=(first, first, third))))

    assert [f.severity for f in found if f.code == "HF104"] == ["error", "not-checked"]


def test_findings_come_worst_first_and_in_the_order_of_the_file() -> None:
    def finding(severity: Severity, line: int, code: str) -> Finding:
        return Finding(code=code, severity=severity, path="", message="m", fix="f", line=line)

    mixed = [
        finding("not-checked", 1, "HF901"),
        finding("warning", 2, "HF721"),
        finding("error", 9, "HF104"),
        finding("error", 3, "HF105"),
    ]

    assert [each.code for each in worst_first(mixed)] == ["HF105", "HF104", "HF721", "HF901"]


def test_every_rule_explains_itself() -> None:
    for each in all_rules().values():
        assert len(each.explanation) > 20, each.code
        assert each.title[0].isupper(), each.code
        assert not each.title.endswith("."), each.code
        assert each.source, each.code


def test_a_rule_that_crashes_is_a_bug_and_propagates(good: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: Cluster, __: Deployment) -> Iterator[None]:
        raise ZeroDivisionError
        yield

    rule = all_rules()["HF104"]
    monkeypatch.setitem(all_rules(), "HF104", type(rule)(**{**vars(rule), "judge": crash}))

    with pytest.raises(ZeroDivisionError):
        judge(good)


def test_constructs_can_read_the_rules_without_the_environment_file() -> None:
    code = (
        "import sys, holdfast.validation;"
        "print([n for n in sys.modules if n.startswith(('holdfast.config', 'pydantic', 'yaml', 'boto3'))])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )

    assert answer.stdout.strip() == "[]"


def test_every_limit_says_where_it_is_from_and_since_when() -> None:
    entries = json.loads(LIMITS_FILE.read_text())

    assert all(set(entry) - {"shape"} == {"source", "date", "values"} and entry["source"] for entry in entries.values())
    assert all(datetime.date.fromisoformat(entry["date"]) for entry in entries.values())
