"""An environment file is judged as far as it can be read; what it accepts is accepted where that is allowed."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.validation import Finding, all_rules
from holdfast.validation.from_environment import check
from holdfast.validation.pages import EXAMPLES, Example, changed, findings_of

WORKERS = "cluster.instance_groups.1"
NO_SPARE = {f"{WORKERS}.spare_count": 0}


def found(folder: Path, changes: dict[str, Any], *, base: str = "slurm.yaml") -> list[Finding]:
    return findings_of(Example(base=base, changes=changes), folder=folder)


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_a_finding_names_the_line_of_its_setting(tmp_path: Path) -> None:
    [finding] = found(tmp_path, {f"{WORKERS}.name": "controller"})
    line = (tmp_path / "slurm.yaml").read_text().splitlines()[(finding.line or 0) - 1]

    assert finding.path == f"{WORKERS}.name"
    assert line.strip() == "- name: controller"


def test_a_setting_that_is_not_there_is_told_at_the_section_around_it(tmp_path: Path) -> None:
    [finding] = found(tmp_path, {f"{WORKERS}.slurm.partition": None})
    line = (tmp_path / "slurm.yaml").read_text().splitlines()[(finding.line or 0) - 1]

    assert finding.path == f"{WORKERS}.slurm.partition"
    assert line.strip() == "slurm:"


def test_a_broken_setting_hides_nothing_in_the_others(tmp_path: Path) -> None:
    findings = found(tmp_path, {"cluster.instance_groups.0.instance_count": "one", f"{WORKERS}.name": "controller"})

    assert [(finding.severity, finding.path) for finding in findings] == [
        ("error", "cluster.instance_groups.0.instance_count"),
        ("error", f"{WORKERS}.name"),
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"network": None},
        {"cluster": None},
        {"storage": 4},
        {"cluster.instance_groups": "two"},
        {"cluster.instance_groups.1": "workers"},
        {"network.cidr": "10.1.0.0/33"},
        {"storage.lustre.capacity_gib": "large"},
        {"lifecycle.users": {"name": "trainer"}},
        {f"{WORKERS}.instance_type": "ml.p5.48xlarg"},
        {f"{WORKERS}.labels": {"team name": "a"}},
        {"region": 4},
        {"cloud": "azure"},
    ],
    ids=str,
)
def test_a_broken_setting_is_told_once(changes: dict[str, Any], tmp_path: Path) -> None:
    findings = found(tmp_path, changes)
    [path] = changes

    assert findings
    assert all(finding.severity == "error" for finding in findings)
    assert {finding.path.split(".")[0] for finding in findings} == {path.split(".")[0]}


def test_a_file_that_is_no_yaml_is_not_usable(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("name: [")

    report = check(path)

    assert not report.usable
    assert codes(report.findings) == ["HF001"]


def test_a_warning_is_accepted_with_a_reason(tmp_path: Path) -> None:
    accepted = {"code": "HF721", "path": f"{WORKERS}.spare_count", "reason": "capacity is bought by the day"}

    assert codes(found(tmp_path, NO_SPARE)) == ["HF721"]
    assert found(tmp_path, {**NO_SPARE, "suppress": [accepted]}) == []


@pytest.mark.parametrize("path", ["cluster.instance_groups.workers", "cluster.instance_groups.1", "cluster", None])
def test_a_suppression_reaches_a_section_by_name_or_number(path: str | None, tmp_path: Path) -> None:
    accepted = {"code": "HF721", "reason": "capacity is bought by the day"} | ({"path": path} if path else {})

    assert found(tmp_path, {**NO_SPARE, "suppress": [accepted]}) == []


def test_a_suppression_elsewhere_hides_nothing_and_is_told(tmp_path: Path) -> None:
    accepted = {"code": "HF721", "path": "cluster.instance_groups.controller", "reason": "agreed with the team"}

    findings = found(tmp_path, {**NO_SPARE, "suppress": [accepted]})

    assert sorted(codes(findings)) == ["HF007", "HF721"]
    assert "HF721 is not found at cluster.instance_groups.0" in [finding.message for finding in findings]


def test_a_suppression_without_a_reason_hides_nothing(tmp_path: Path) -> None:
    assert sorted(codes(found(tmp_path, {**NO_SPARE, "suppress": [{"code": "HF721"}]}))) == ["HF003", "HF721"]


def test_an_error_that_may_be_accepted_is(tmp_path: Path) -> None:
    changes = {"eks.kubernetes_version": "1.36", "suppress": [{"code": "HF302", "reason": "documented since Monday"}]}

    assert found(tmp_path, changes, base="eks.yaml") == []


def test_what_was_suppressed_is_in_the_report(tmp_path: Path) -> None:
    path = tmp_path / "slurm.yaml"
    accepted = {"code": "HF721", "reason": "capacity is bought by the day"}
    good = yaml.safe_load((EXAMPLES / "slurm.yaml").read_text())
    path.write_text(yaml.safe_dump(changed(good, {**NO_SPARE, "suppress": [accepted]})))

    report = check(path)

    assert codes(report.suppressed) == ["HF721"]


def test_the_default_strategy_is_not_sent_with_continuous_provisioning(tmp_path: Path) -> None:
    assert found(tmp_path, {"cluster.node_provisioning_mode": "Continuous"}) == []


def test_an_existing_network_is_not_checked_rather_than_passed(tmp_path: Path) -> None:
    existing = {
        "vpc_id": "vpc-0123456789abcdef0",
        "vpc_cidr": "10.1.0.0/16",
        "subnet_id": "subnet-0123456789abcdef0",
        "security_group_id": "sg-0123456789abcdef0",
    }

    findings = found(tmp_path, {"network": {"availability_zone": "us-west-2a", "existing": existing}})

    assert {finding.severity for finding in findings} == {"not-checked"}
    assert {"HF203", "HF204", "HF205", "HF209"} <= set(codes(findings))


ENVIRONMENTS = sorted((Path(__file__).parents[3] / "environments").glob("*.yaml"))


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_no_error_and_no_warning_is_found_in_the_environments(path: Path) -> None:
    assert [finding for finding in check(path).findings if finding.severity != "not-checked"] == []


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("HF*.yaml"))[::9], ids=lambda path: path.stem)
def test_errors_only_leaves_out_what_forbids_nothing_and_nothing_else(path: Path) -> None:
    everything = [finding for finding in check(path).findings if finding.severity == "error"]

    assert check(path, errors_only=True).findings == everything


GOOD = {name: yaml.safe_load((EXAMPLES / name).read_text()) for name in ("slurm.yaml", "eks.yaml")}


def places(value: Any, path: tuple[str, ...] = ()) -> list[str]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [".".join(path)] * bool(path) + [place for key, item in inside for place in places(item, (*path, str(key)))]


ODD = st.sampled_from([None, "", "x", -1, 0, 10**9, True, 1.5, [], ["a"], {}, {"a": 1}, "10.0.0.0/99", "a/b", "\u00e9"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_broken_file_makes_the_check_fail(data: st.DataObject, tmp_path: Path) -> None:
    name = data.draw(st.sampled_from(sorted(GOOD)))
    place = data.draw(st.sampled_from(places(GOOD[name])))
    damaged = changed(GOOD[name], {place: data.draw(ODD)})
    other = data.draw(st.sampled_from(sorted(places(damaged), reverse=True)))
    if not other.startswith(place) and not place.startswith(other):
        damaged = changed(damaged, {other: data.draw(ODD.filter(lambda odd: odd is not None))})
    path = tmp_path / name
    path.write_text(yaml.safe_dump(damaged))

    for finding in check(path).findings:
        assert finding.message
        assert finding.fix
        assert finding.line


def test_every_code_of_a_refused_value_is_that_of_a_rule(repository: Path) -> None:
    told = {
        code
        for module in (repository / "holdfast" / "config").rglob("*.py")
        for code in re.findall(r'code(?:: str)? ?= ?"(HF\d{3})"', module.read_text())
    }

    assert "HF608" in told
    assert told <= set(all_rules())


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster.name": "my_cluster"}, "HF004"),
        ({f"{WORKERS}.name": "p5.workers"}, "HF004"),
        ({f"{WORKERS}.instance_type": "p5.48xlarge"}, "HF106"),
        ({f"{WORKERS}.slurm.partition": "ml.p5.48xlarge"}, "HF004"),
        ({"lifecycle.users": [{"name": "ana", "uid": 500}]}, "HF516"),
        ({"storage.lustre.mount_path": "fsx"}, "HF604"),
        ({"storage.lustre.capacity_gib": 1300}, "HF608"),
        ({"storage.lustre.metadata_iops": 5000}, "HF623"),
        ({f"{WORKERS}.image_release_version": "latest"}, "HF004"),
    ],
)
def test_a_refused_value_is_told_once_under_its_rules_code(changes: dict[str, Any], code: str, tmp_path: Path) -> None:
    assert codes(found(tmp_path, changes)) == [code]


def test_an_open_question_of_an_import_is_an_error_at_its_setting(tmp_path: Path) -> None:
    path = tmp_path / "imported.yaml"
    good = yaml.safe_dump(yaml.safe_load((EXAMPLES / "slurm.yaml").read_text()), sort_keys=False)
    note = "# DECIDE: not known from the configuration;\n#   say it\nregion:"
    path.write_text(good.replace("region:", note, 1))

    [finding] = [each for each in check(path).findings if each.code == "HF013"]

    assert (finding.severity, finding.path) == ("error", "region")
    assert finding.line == good[: good.index("region:")].count("\n") + 1
    assert "not known from the configuration; say it" in finding.message
    assert check(path, errors_only=True).findings == [finding]


@pytest.mark.parametrize("text", ["# we DECIDE: later\n", "# 'DECIDE: x' is what an import writes\n"])
def test_a_comment_of_a_person_is_no_open_question(text: str, tmp_path: Path) -> None:
    path = tmp_path / "slurm.yaml"
    path.write_text(text + (EXAMPLES / "slurm.yaml").read_text())

    assert "HF013" not in codes(check(path).findings)
