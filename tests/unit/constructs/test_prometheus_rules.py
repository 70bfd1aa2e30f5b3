"""Every alert rule fires when it should, not sooner, and not without cause: promtool evaluates them."""

import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
import yaml
from alert_cases import ALERTS

ROOT = Path(__file__).parents[3]
RULES = ROOT / "constructs" / "holdfast_constructs" / "observability" / "prometheus_rules.yaml"
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="needs promtool of Debian's package prometheus (make monitoring)"
)


def rules() -> list[dict[str, object]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def promtool(folder: Path, tests: list[dict[str, object]]) -> "subprocess.CompletedProcess[str]":
    file = folder / "tests.yaml"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "30s", "tests": tests}))
    return subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, timeout=120)


def unit(name: str, series: Mapping[str, str], *, silent_at: Iterable[str]) -> dict[str, object]:
    """A test of promtool: no alert of that name at any of these times."""
    return {
        "interval": "30s",
        "input_series": [{"series": one, "values": values} for one, values in series.items()],
        "alert_rule_test": [{"eval_time": at, "alertname": name, "exp_alerts": []} for at in silent_at],
    }


def test_every_rule_has_a_case_and_every_case_a_rule() -> None:
    assert sorted(str(rule["alert"]) for rule in rules()) == sorted(ALERTS)


def test_every_rule_is_in_the_table_of_the_docs() -> None:
    page = (ROOT / "docs" / "do" / "alerts.md").read_text()
    assert [name for name in ALERTS if f"`{name}`" not in page] == []


@needs_promtool
def test_promtool_finds_nothing_wrong_with_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_no_rule_fires_before_its_time_or_without_cause(tmp_path: Path) -> None:
    early = [unit(name, case.fires, silent_at=[case.before]) for name, case in ALERTS.items()]
    minutes = [f"{minute}m" for minute in range(30)]
    quiet = [unit(name, case.quiet, silent_at=minutes) for name, case in ALERTS.items()]
    done = promtool(tmp_path, [*early, *quiet])
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
@pytest.mark.parametrize("name", sorted(ALERTS))
def test_a_rule_fires_when_it_should(name: str, tmp_path: Path) -> None:
    case = ALERTS[name]
    done = promtool(tmp_path, [unit(name, case.fires, silent_at=[case.at])])
    assert done.returncode == 1, "promtool would say that it found an alert where none was expected"
    assert f"alertname: {name}" in done.stderr + done.stdout
