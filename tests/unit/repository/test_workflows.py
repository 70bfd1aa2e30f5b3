"""Workflows are well-formed by the forges' own schemas, and call the two commands of this repository."""

import json
import os
import shlex
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from holdfast.cli.repository import Answers, repository_files

ROOT = Path(__file__).parents[3]
GITHUB, GITLAB, DEPENDABOT = "github-workflows", "gitlab-ci", "dependabot"
COMMANDS = {".ci/run", 'python3 scripts/release.py --tag "$TAG"'}


def written(*, schema: str) -> dict[str, str]:
    """Workflows of this repository, and of the one that init writes."""
    own = repository_files(Answers(name="lab"), version="0.1.0")
    place = {GITHUB: ".github/workflows/holdfast.yml", GITLAB: ".gitlab-ci.yml", DEPENDABOT: ".github/dependabot.yml"}
    texts = {"this": (ROOT / place[schema]).read_text()}
    return texts | ({"init": own[place[schema]]} if place[schema] in own else {})


def problems(text: str, *, schema: str) -> list[str]:
    vendored = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / f"{schema}.json"
    loaded = json.loads(vendored.read_text())
    # YAML 1.1 reads the key `on` as true; GitHub and the schemas take it as text.
    document = {"on" if key is True else key: value for key, value in yaml.safe_load(text).items()}
    return [error.message for error in jsonschema.validators.validator_for(loaded)(loaded).iter_errors(document)]


@pytest.mark.parametrize("schema", [GITHUB, GITLAB, DEPENDABOT])
def test_workflows_have_the_form_of_their_forge(schema: str) -> None:
    found = {whose: problems(text, schema=schema) for whose, text in written(schema=schema).items()}

    assert [f"{whose}: {each}" for whose, all_of_it in found.items() for each in all_of_it] == []


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        (GITHUB, "runs-on:", "runs_on:"),
        (GITLAB, "script:", "scripts:"),
        (DEPENDABOT, "interval: weekly", "interval: 7"),
    ],
)
def test_a_mistake_in_a_workflow_is_found(schema: str, right: str, wrong: str) -> None:
    text = written(schema=schema)["this"]

    assert right in text
    assert problems(text.replace(right, wrong), schema=schema)


@pytest.mark.parametrize("schema", [GITHUB, GITLAB])
def test_both_workflows_call_the_same_two_commands(schema: str) -> None:
    workflow = yaml.safe_load(written(schema=schema)["this"])
    jobs = workflow["jobs"].values() if schema == GITHUB else (workflow["test"], workflow["release"])
    called = [line.removeprefix("sudo ") for job in jobs for line in _lines(job)]

    assert len(called) == len(COMMANDS)
    assert {*called} == COMMANDS
    assert os.access(ROOT / ".ci/run", os.X_OK)


def _lines(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step] if "steps" in job else job["script"]


def test_hooks_before_a_commit_are_commands_of_make_lint() -> None:
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    lint = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]

    for hook in local["hooks"]:
        program, *rest = shlex.split(hook["entry"])
        assert program.startswith(".venv/bin/"), hook
        assert f"\t@{' '.join([Path(program).name, *rest])}" in lint, hook
