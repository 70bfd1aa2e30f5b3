"""The files of a new repository, from the templates beside this file."""

import re
from collections.abc import Mapping
from pathlib import Path

from holdfast.cli.repository.answers import LOCAL, Answers

_TEMPLATE = Path(__file__).resolve().parent / "template"
_PLACE = re.compile(r"@@(\w+)@@")
_COMMON = {
    ".github/workflows/holdfast.yml": "github/holdfast.yml",
    ".gitignore": "gitignore",
    ".gitlab-ci.yml": "gitlab-ci.yml",
    "README.md": "README.md",
    "SKILL.md": "SKILL.md",
    "app.py": "app.py",
    "cdk.json": "cdk.json",
    "ci/check.sh": "ci/check.sh",
    "ci/diff.sh": "ci/diff.sh",
    "jobs/train/train.py": "jobs/train/train.py",
    "requirements.txt": "requirements.txt",
    "tests/test_templates.py": "tests/test_templates.py",
}
"""File of the repository by its template."""
_JOBS = {"slurm": "train.sbatch", "eks": "train.yaml"}


def repository_files(answers: Answers, *, version: str) -> Mapping[str, str]:
    """
    Return the text of each file by its path in the repository.

    Args:
        version: Version of Holdfast that the repository starts with, as in 0.1.0.
    """
    from holdfast.config.pages import schema_text

    job = _JOBS[answers.orchestrator]
    templates = {
        **_COMMON,
        f"environments/{LOCAL}.yaml": f"environments/local-{answers.orchestrator}.yaml",
        f"environments/{answers.name}.yaml": f"environments/aws-{answers.orchestrator}.yaml",
        f"jobs/train/{job}": f"jobs/train/{job}",
    }
    values = {
        "name": answers.name,
        "account": answers.account,
        "region": answers.region,
        "holdfast": compatible(version),
        "job": job,
        "prepare": "" if answers.orchestrator == "slurm" else "sudo .venv/bin/holdfast kubernetes build --for local\n",
    }
    files = {path: _rendered(name, values) for path, name in templates.items()}
    return {**files, "environments/environment.schema.json": schema_text()}


def compatible(version: str) -> str:
    """Return the range that starts at a version and ends before the next minor one: ``>=0.1.0,<0.2``."""
    major, minor, *_ = version.split(".")
    return f">={version},<{major}.{int(minor) + 1}"


def _rendered(name: str, values: Mapping[str, str]) -> str:
    text = (_TEMPLATE / f"{name}.txt").read_text()
    return _PLACE.sub(lambda place: values[place[1]], text)
