"""The CDK app: an environment becomes an assembly, and a wrong one a message and exit code 2."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest


def run_app(
    root: Path, folder: Path, *, variables: Mapping[str, str] = MappingProxyType({}), **context: Any
) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join((str(Path(sys.prefix) / "bin"), os.environ["PATH"]))
    return subprocess.run(
        [sys.executable, str(root / "app.py")],
        cwd=folder,
        env={"PATH": path, "CDK_OUTDIR": str(folder / "cdk.out"), "CDK_CONTEXT_JSON": json.dumps(context), **variables},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize(
    ("context", "given"), [({}, "no environment"), ({"environment": "prod"}, "environment 'prod'")]
)
def test_an_environment_that_is_not_there_is_answered_with_those_that_are(
    context: dict[str, str], given: str, repository: Path, tmp_path: Path
) -> None:
    answer = run_app(repository, tmp_path, **context)

    known = ", ".join(sorted(path.stem for path in (repository / "environments").glob("*.yaml")))
    assert answer.returncode == 2
    assert answer.stderr == (
        f"got {given}; allowed: {known}, or the path of a YAML file; add -c environment=NAME to the cdk command\n"
    )


def test_problems_of_the_file_are_told_without_a_traceback(repository: Path, tmp_path: Path) -> None:
    text = (repository / "environments" / "local.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("instance_count: 4", "instance_count: four"))
    answer = run_app(repository, tmp_path, environment="mine.yaml")

    assert answer.returncode == 2
    line = text[: text.index("instance_count: 4")].count("\n") + 1
    assert answer.stderr == (
        f'mine.yaml:{line}: cluster.instance_groups.1.instance_count: got "four"; '
        "allowed: a whole number from 0 to 6758; write instance_count: 4\n"
    )


def test_what_the_rules_find_is_told_by_its_code_before_anything_is_built(repository: Path, tmp_path: Path) -> None:
    text = (repository / "environments" / "local.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("node_type: Controller", "node_type: Login"))
    answer = run_app(repository, tmp_path, environment="mine.yaml")

    assert answer.returncode == 2
    assert "HF403" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not list((tmp_path / "cdk.out").glob("*.template.json"))


def test_an_environment_becomes_one_stack_in_its_account_and_region(repository: Path, tmp_path: Path) -> None:
    file = repository / "environments" / "slurm-p5.yaml"
    answer = run_app(repository, tmp_path, environment=str(file), changes="unchecked")

    assert (answer.returncode, answer.stderr) == (0, "")
    manifest = json.loads((tmp_path / "cdk.out" / "manifest.json").read_text())
    stacks = {name: item for name, item in manifest["artifacts"].items() if item["type"] == "aws:cloudformation:stack"}
    assert {name: item["environment"] for name, item in stacks.items()} == {
        "holdfast-slurm-p5": "aws://111122223333/us-west-2"
    }
    assert "missing" not in manifest, "no context look-up may be needed"


@pytest.mark.parametrize("validation", ["true", "false"])
def test_the_validator_of_the_cdk_judges_the_templates_unless_it_is_not_wanted(
    validation: str, repository: Path, tmp_path: Path
) -> None:
    variables = {"CDK_VALIDATION": validation}
    answer = run_app(repository, tmp_path, variables=variables, environment="full", changes="unchecked")

    assert answer.returncode == 0
    report = json.loads((tmp_path / "cdk.out" / "validation-report.json").read_text())
    judged = [plugin["pluginName"] for plugin in report["pluginReports"]]
    assert judged == (["CloudFormation Validate"] if validation == "true" else []) + ["holdfast"]
    if validation == "true":
        (cdk, _) = report["pluginReports"]
        wrong = {finding["ruleName"] for finding in cdk["suppressedViolations"]}
        assert cdk["violations"] == []
        assert wrong == {"F3002", "F3006", "W3010"}, "what is right by now need not be acknowledged"


LOAD_WITHOUT_NODE = """\
import os, signal
from pathlib import Path

import aws_cdk

def children(process):
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]

(starter,) = children(os.getpid())
for process in (starter, *children(starter)):
    os.kill(process, signal.SIGKILL)

import holdfast.validation.from_environment.report, stacks
try:
    aws_cdk.Duration.minutes(1)
except BaseException:
    print("loaded, and Node was dead", flush=True)
os._exit(0)
"""


def test_loading_the_stack_asks_node_nothing_so_that_it_can_do_something_else(repository: Path, tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", LOAD_WITHOUT_NODE],
        cwd=repository,
        env={**os.environ, "TMPDIR": str(tmp_path)},  # the folder of a Node that is killed is left behind
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert (answer.returncode, answer.stdout) == (0, "loaded, and Node was dead\n"), answer.stderr
