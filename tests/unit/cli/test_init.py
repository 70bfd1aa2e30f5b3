"""``holdfast init``: what it writes, refuses and leaves."""

import errno
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from holdfast.cli import app
from holdfast.cli.repository import Answers, refusal, repository_files, write_repository
from holdfast.cli.terminal import CommandError
from holdfast.config.pages import schema_text
from holdfast.validation.from_environment import check


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("orchestrator", ["slurm", "eks"])
def test_environments_of_a_new_repository_have_no_finding_and_the_schema_beside_them(
    orchestrator: str, tmp_path: Path
) -> None:
    done = CliRunner().invoke(
        app, ["init", str(tmp_path / "own"), "--name", "lab", "--region", "us-east-2", "--orchestrator", orchestrator]
    )

    assert done.exit_code == 0, done.output
    assert f"sudo {Path(sys.executable).parent}/holdfast up local" in done.output.replace("\n", "")
    environments = tmp_path / "own/environments"
    assert (environments / "environment.schema.json").read_text() == schema_text()
    for name in ("lab", "local"):
        report = check(environments / f"{name}.yaml")
        assert [str(each) for each in report.findings if each.severity != "not-checked"] == []
        document = yaml.safe_load((environments / f"{name}.yaml").read_text())
        assert (document["name"], document["region"]) == (name, "us-east-2")
        assert ("eks" in document) == (orchestrator == "eks")


def test_each_orchestrator_has_its_job_and_no_place_is_left_open() -> None:
    slurm = repository_files(Answers(name="lab"), version="1.2.3")
    eks = repository_files(Answers(orchestrator="eks"), version="1.2.3")

    assert slurm.keys() - eks.keys() == {"environments/lab.yaml", "jobs/train/train.sbatch"}
    assert eks.keys() - slurm.keys() == {"environments/production.yaml", "jobs/train/train.yaml"}
    assert "holdfast-constructs>=1.2.3,<1.3\n" in slurm["requirements.txt"]
    assert [name for name, text in {**eks, **slurm}.items() if "@@" in text] == []


@pytest.mark.parametrize("workflow", [".github/workflows/holdfast.yml", ".gitlab-ci.yml"])
def test_a_workflow_calls_the_two_scripts_of_the_repository_and_posts_their_report(workflow: str) -> None:
    files = repository_files(Answers(region="eu-west-1"), version="0.1.0")
    (job,) = [job for job in _jobs(yaml.safe_load(files[workflow])) if job]
    commands = "\n".join(job)

    assert set(re.findall(r"\bci/\w+\.sh", commands)) == {"ci/check.sh", "ci/diff.sh"} <= files.keys()
    assert "report.md" in commands
    assert "eu-west-1" in files[workflow]


def _jobs(workflow: dict[str, Any]) -> list[list[str]]:
    """Commands of each job, of GitHub or of GitLab."""
    if "jobs" in workflow:
        return [[step["run"] for step in job["steps"] if "run" in step] for job in workflow["jobs"].values()]
    return [[*job["before_script"], *job["script"], *job["after_script"]] for job in workflow.values()]


def test_scripts_can_be_run_and_other_files_of_the_folder_stay(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "LICENSE").write_text("mine")
    files = repository_files(Answers(), version="0.1.0")
    write_repository(tmp_path, files)

    assert {name for name in files if os.access(tmp_path / name, os.X_OK)} >= {"ci/check.sh", "ci/diff.sh"}
    assert files_in(tmp_path) == {*files, "LICENSE"}


def test_files_that_exist_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("mine")
    (tmp_path / "tests").write_text("a file in the place of a folder")

    with pytest.raises(CommandError, match=rf"got {tmp_path} with app.py, tests; allowed: a folder without the files"):
        write_repository(tmp_path, repository_files(Answers(), version="0.1.0"))
    assert files_in(tmp_path) == {"app.py", "tests"}


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(28, "No space left on device", "x")])
@pytest.mark.parametrize("at", [0, 3])
def test_whatever_interrupts_the_writing_leaves_nothing(
    failure: BaseException, at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, chmod = [at], Path.chmod

    def failing(path: Path, mode: int) -> None:
        if not left[0]:
            raise failure
        left[0] -= 1
        chmod(path, mode)

    monkeypatch.setattr(Path, "chmod", failing)
    expected = CommandError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write_repository(tmp_path / "deep/own", repository_files(Answers(), version="0.1.0"))

    assert list(tmp_path.iterdir()) == []


def test_a_read_only_file_system_is_named_as_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)  # there also of what does not exist

    with pytest.raises(CommandError, match=r"/\.github cannot be written: Read-only file system; nothing was written"):
        write_repository(tmp_path, repository_files(Answers(), version="0.1.0"))


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("name", "Lab", "got --name 'Lab'; allowed: 1 to 24 lower-case letters"),
        ("name", "local", "got --name 'local', which is the environment of this machine"),
        ("name", "a" * 25, "1 to 24"),
        ("account", "12", "the 12 digits of an AWS account"),
        ("region", "us-east-9", "allowed: a region with HyperPod: ap-northeast-1"),
        ("region", "ohio", "the name of an AWS region"),
        ("orchestrator", "k8s", "allowed: slurm or eks"),
    ],
)
def test_an_answer_is_refused_by_the_rule_of_the_environment_file(field: str, value: str, told: str) -> None:
    assert told in refusal(field, value)


def test_defaults_are_not_refused() -> None:
    assert [refusal(field, value) for field, value in vars(Answers()).items()] == [""] * 4


def test_all_refused_flags_are_told_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["init", str(tmp_path / "own"), "--name", "Lab", "--region", "ohio"])

    assert isinstance(done.exception, CommandError)
    assert str(done.exception).count("got --") == 2
    assert list(tmp_path.iterdir()) == []
