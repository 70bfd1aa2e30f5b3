"""Inputs of the kinds that ended a command with a traceback: each is told in words now."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast import cli

ROOT = Path(__file__).parents[3]
Run = Callable[..., tuple[int, str, str]]
GROUP: dict[str, Any] = {
    "InstanceGroupName": "a",
    "InstanceCount": 1,
    "InstanceType": "ml.m5.large",
    "ExecutionRole": "arn:aws:iam::111122223333:role/nodes",
}


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(ROOT)

    def of(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["holdfast", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsysbinary.readouterr()
        return int(ended.value.code or 0), out.decode(), err.decode()

    return of


@pytest.mark.parametrize(
    "value", ["!!float ''", "!!int ''", "!!bool perhaps", "!!timestamp x", "!!float x", "!!int '-'"]
)
def test_a_value_that_is_not_what_its_tag_says_is_a_finding(value: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    text = (ROOT / "environments" / "local.yaml").read_text()
    path.write_text(re.sub(r"instance_count: \d+", f"instance_count: {value}", text, count=1))

    code, out, _ = run("check", path, "--offline")

    assert code in (1, 2)
    assert "instance_count" in out


def test_a_broken_block_of_a_vpc_is_a_finding_and_no_value_for_other_rules(run: Run, tmp_path: Path) -> None:
    text = (ROOT / "environments" / "existing-slurm.yaml").read_text()
    path = tmp_path / "broken.yaml"
    path.write_text(re.sub(r"vpc_cidr: .*", "vpc_cidr: [10.1.0.0/16]\n    subnet_cidr: 10.1.1.0/24", text))
    assert path.read_text() != text

    code, out, _ = run("check", path, "--offline")

    assert code == 1
    assert "vpc_cidr" in out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            json.dumps({"ClusterName": "a", "InstanceGroups": [GROUP]}).replace(": 1,", ": " + "9" * 5_000 + ","),
            "digits",
        ),
        (json.dumps({"ClusterName": "a", "InstanceGroups": [{**GROUP, "\ud800": 1}]}), "half of a pair"),
        (json.dumps({"ClusterName": "a\udfff", "InstanceGroups": [GROUP]}), "half of a pair"),
    ],
)
def test_what_no_request_can_hold_is_refused(content: str, words: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(content)

    code, _, err = run("import", "--config", path, "--region", "us-west-2")

    assert code == 2
    assert words in err


@pytest.mark.parametrize(
    "name", ["\x1b[2J", ",", "\x07a", "[a", "*a", "2026-99-99", "!!float", "\u202e", "\U0001f600", "{"]
)
def test_any_name_is_written_so_that_yaml_reads_it_back(name: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"ClusterName": "mine", "InstanceGroups": [{**GROUP, "InstanceGroupName": name}]}))

    code, out, err = run("import", "--config", path, "--region", "us-west-2")

    assert code == 0, err
    (group,) = yaml.safe_load(out)["cluster"]["instance_groups"]
    assert group["name"] == name


def test_a_key_that_is_longer_than_yaml_reads_on_one_line_is_read_back(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    labels = {"x" * 5_000: "research", "team": "a"}
    group = {**GROUP, "KubernetesConfig": {"Labels": labels}}
    eks = {"Eks": {"ClusterArn": "arn:aws:eks:us-west-2:111122223333:cluster/mine"}}
    path.write_text(json.dumps({"ClusterName": "mine", "InstanceGroups": [group], "Orchestrator": eks}))

    code, out, err = run("import", "--config", path, "--region", "us-west-2")

    assert code == 0, err
    (group,) = yaml.safe_load(out)["cluster"]["instance_groups"]
    assert labels in group.values()


def test_half_of_a_character_in_an_event_is_shown_escaped(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    lost = {
        "version": 1,
        "time_ns": 5,
        "source": "control-plane",
        "kind": "node_lost",
        "node": "i-1",
        "fault": "\ud800",
    }
    log.write_text(json.dumps({**lost, "evidence": "\udfff"}))
    page = tmp_path / "page.html"

    code, out, err = run("incidents", "--events", log, "--html", page)

    assert code == 0, err
    assert "\\ud800" in out
    assert "\\udfff" in page.read_text()
