"""The CDK app: an environment becomes an assembly, and a wrong one a message and exit code 2."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App

from app import synthesise


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Exit code and standard error of the app."""

    returncode: int
    stderr: str


Run = Callable[..., Answer]


@pytest.fixture
def run_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The app in this process, in a folder of its own, with the given context."""
    monkeypatch.chdir(tmp_path)

    def run(**context: Any) -> Answer:
        app, exit_code = App(analytics_reporting=False, context=context, outdir=str(tmp_path / "cdk.out")), 0
        try:
            synthesise(app)
        except SystemExit as ended:
            exit_code = int(str(ended.code))
        return Answer(returncode=exit_code, stderr=capsys.readouterr().err)

    return run


@pytest.mark.e2e  # a Node of its own: 12 s of CPU
def test_cdk_synth_without_validation_leaves_the_rules_of_holdfast(repository: Path, tmp_path: Path) -> None:
    variables = {
        "PATH": os.pathsep.join((str(Path(sys.prefix) / "bin"), os.environ["PATH"])),
        "CDK_VALIDATION": "false",  # as the CDK CLI sets it; Node reads it, too
        "CDK_CONTEXT_JSON": json.dumps({"environment": "full", "changes": "unchecked"}),
        "CDK_OUTDIR": str(tmp_path / "cdk.out"),
    }
    command = [sys.executable, str(repository / "app.py")]

    done = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=240, check=False
    )

    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "cdk.out" / "validation-report.json").read_text())
    assert [plugin["pluginName"] for plugin in report["pluginReports"]] == ["holdfast"]


@pytest.mark.parametrize(
    ("context", "given"), [({}, "no environment"), ({"environment": "prod"}, "environment 'prod'")]
)
def test_an_environment_that_is_not_there_is_answered_with_those_that_are(
    context: dict[str, str], given: str, repository: Path, run_app: Run
) -> None:
    answer = run_app(**context)

    known = ", ".join(sorted(path.stem for path in (repository / "environments").glob("*.yaml")))
    assert answer.returncode == 2
    assert answer.stderr == (
        f"got {given}; allowed: {known}, or the path of a YAML file; add -c environment=NAME to the cdk command\n"
    )


def test_problems_of_the_file_are_reported_without_a_traceback(repository: Path, tmp_path: Path, run_app: Run) -> None:
    text = (repository / "environments" / "local.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("instance_count: 4", "instance_count: four"))
    answer = run_app(environment="mine.yaml")

    assert answer.returncode == 2
    line = text[: text.index("instance_count: 4")].count("\n") + 1
    assert answer.stderr == (
        f'mine.yaml:{line}: cluster.instance_groups.1.instance_count: got "four"; '
        "allowed: a whole number from 0 to 6758; write instance_count: 4\n"
    )


def test_findings_are_reported_by_code_before_anything_is_built(repository: Path, tmp_path: Path, run_app: Run) -> None:
    text = (repository / "environments" / "local.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("node_type: Controller", "node_type: Login"))
    answer = run_app(environment="mine.yaml")

    assert answer.returncode == 2
    assert "HF403" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not list((tmp_path / "cdk.out").glob("*.template.json"))


def test_an_environment_becomes_one_stack_in_its_account_and_region(
    repository: Path, tmp_path: Path, run_app: Run
) -> None:
    file = repository / "environments" / "slurm-p5.yaml"
    answer = run_app(environment=str(file), changes="unchecked")

    assert (answer.returncode, answer.stderr) == (0, "")
    manifest = json.loads((tmp_path / "cdk.out" / "manifest.json").read_text())
    stacks = {name: item for name, item in manifest["artifacts"].items() if item["type"] == "aws:cloudformation:stack"}
    assert {name: item["environment"] for name, item in stacks.items()} == {
        "holdfast-slurm-p5": "aws://111122223333/us-west-2"
    }
    assert "missing" not in manifest, "no context look-up may be needed"


def test_the_validator_of_the_cdk_checks_the_templates(tmp_path: Path, run_app: Run) -> None:
    answer = run_app(environment="full", changes="unchecked")

    assert answer.returncode == 0
    report = json.loads((tmp_path / "cdk.out" / "validation-report.json").read_text())
    by_name = {plugin["pluginName"]: plugin for plugin in report["pluginReports"]}
    assert set(by_name) == {"CloudFormation Validate", "holdfast"}
    cdk = by_name["CloudFormation Validate"]
    wrong = {finding["ruleName"] for finding in cdk["suppressedViolations"]}
    assert cdk["violations"] == []
    assert wrong == {"F3002", "F3006", "W3010"}, "an acknowledged finding that has gone"
