"""The CDK app: an environment becomes an assembly, and a wrong one a message and exit code 2."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def run_app(root: Path, folder: Path, **context: Any) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join((str(Path(sys.prefix) / "bin"), os.environ["PATH"]))
    return subprocess.run(
        [sys.executable, str(root / "app.py")],
        cwd=folder,
        env={"PATH": path, "CDK_OUTDIR": str(folder / "cdk.out"), "CDK_CONTEXT_JSON": json.dumps(context)},
        capture_output=True,
        text=True,
        timeout=90,
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
