"""Prometheus beside the local nodes: what it is told to scrape, and who may ask it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.localcloud.monitor import (
    MonitorAccess,
    MonitorError,
    MonitorSettings,
    ScrapeTarget,
    access_of,
    alertmanager_configuration,
    bcrypt,
    check_rules,
    prometheus_configuration,
    settings_of,
    web_configuration,
    write_access,
    write_settings,
)

RULES = Path(__file__).parents[3] / "constructs" / "holdfast_constructs" / "observability" / "prometheus_rules.yaml"
TARGETS = [
    ScrapeTarget(
        instance_id=f"i-{number}", instance=f"ip-10-1-0-{number}", address=f"10.1.0.{number}:9464", token=f"t{number}"
    )
    for number in (2, 1)
]
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="needs promtool of Debian's package prometheus (make monitoring)"
)


def test_each_agent_is_asked_with_its_own_token_and_told_apart_as_those_that_send_are() -> None:
    first, second = prometheus_configuration(TARGETS, cluster="local")["scrape_configs"]
    assert first["static_configs"] == [
        {
            "targets": ["10.1.0.1:9464"],
            "labels": {"cluster": "local", "instance": "ip-10-1-0-1", "instance_id": "i-1"},
        }
    ]
    assert (first["authorization"], second["authorization"]) == (
        {"credentials_file": "tokens/i-1"},
        {"credentials_file": "tokens/i-2"},
    )
    assert first["relabel_configs"] == second["relabel_configs"]
    assert "t1" not in json.dumps(first)


@needs_promtool
def test_promtool_takes_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "tokens").mkdir()
    for name in ("tokens/i-1", "tokens/i-2", "password"):
        (tmp_path / name).write_text("x")
    shutil.copy(RULES, tmp_path / "rules.yaml")
    (tmp_path / "prometheus.json").write_text(json.dumps(prometheus_configuration(TARGETS, cluster="local")))
    (tmp_path / "web.json").write_text(json.dumps(web_configuration(password_hash=bcrypt("x"))))
    for kind, file in (("config", "prometheus.json"), ("web-config", "web.json")):
        done = subprocess.run(
            ["promtool", "check", kind, file], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("amtool") is None, reason="needs amtool of prometheus-alertmanager (make monitoring)")
def test_amtool_takes_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "alertmanager.json"
    file.write_text(json.dumps(alertmanager_configuration()))
    done = subprocess.run(["amtool", "check-config", file], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_a_file_that_has_no_rules_is_refused(tmp_path: Path) -> None:
    check_rules(RULES)
    wrong = tmp_path / "rules.yaml"
    wrong.write_text("groups: [{name: x, rules: [{alert: A, expr: 'rate('}]}]")
    with pytest.raises(MonitorError, match="is not a Prometheus rules file: "):
        check_rules(wrong)


def test_without_the_programs_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MonitorError, match="prometheus, prometheus-alertmanager, promtool not found in PATH"):
        check_rules(RULES)


def test_a_restart_has_the_rules_and_the_cluster_of_the_last_start(tmp_path: Path) -> None:
    settings = MonitorSettings(rules=RULES.read_text(), cluster="local")
    write_settings(tmp_path, settings)
    assert settings_of(tmp_path) == settings


def test_the_password_lies_in_the_home_for_its_owner_alone(tmp_path: Path) -> None:
    assert access_of(tmp_path) is None
    (tmp_path / "monitor").mkdir()
    access = MonitorAccess(prometheus="http://localhost:1", alertmanager="http://localhost:2", password="secret")
    write_access(tmp_path, access)
    assert access_of(tmp_path) == access
    assert (tmp_path / "monitor" / "access.json").stat().st_mode & 0o077 == 0
    assert bcrypt("secret") != bcrypt("secret")
    assert bcrypt("secret").startswith("$2b$10$")
