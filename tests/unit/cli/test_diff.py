"""What ``holdfast diff`` prints, and with what it exits."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from holdfast import importing
from holdfast.cli.commands.environment import diff
from holdfast.cli.terminal import CommandError
from holdfast.config import load
from holdfast.importing import DeployedStack, deployed_environment
from holdfast.updates import environment_metadata, environment_of
from holdfast_stacks import check_changes

SLURM = Path(__file__).parents[3] / "environments" / "slurm-p5.yaml"
APP = typer.Typer()
APP.command()(diff.diff)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.commands.environment.diff.console._width", 1000)


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> DeployedStack:
    """slurm-p5 as it is in environments/ is deployed."""
    found = DeployedStack(state="read", environment=environment_of({"Metadata": environment_metadata(load(SLURM))}))
    answer_with(monkeypatch, found)
    return found


def answer_with(monkeypatch: pytest.MonkeyPatch, found: DeployedStack, **counts: int) -> None:
    monkeypatch.setattr(importing, "deployed_environment", lambda **_: found)
    monkeypatch.setattr(importing, "live_counts", lambda **_: counts)


def changed(tmp_path: Path, old: str, new: str) -> str:
    text = SLURM.read_text()
    assert old in text
    path = tmp_path / "changed.yaml"
    path.write_text(text.replace(old, new))
    return str(path)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(APP, list(arguments))


def test_an_unchanged_file_is_told_so(deployed: DeployedStack) -> None:
    answer = run(str(SLURM))

    assert (answer.exit_code, answer.stdout) == (0, "holdfast-slurm-p5 matches the file\n")


def test_a_group_whose_nodes_were_moved_is_named(deployed: DeployedStack, monkeypatch: pytest.MonkeyPatch) -> None:
    assert deployed.environment is not None
    group = deployed.environment["cluster"]["instance_groups"][-1]
    count = group["instance_count"] + group["spare_count"]
    answer_with(monkeypatch, deployed, **{group["name"]: count - 1})
    answer = run(str(SLURM))
    assert answer.stdout == "holdfast-slurm-p5 matches the file\n"
    assert (
        f"group {group['name']}: the account has {count - 1} instances and the deployed file {count}" in answer.stderr
    )
    assert f"the next deployment that changes the cluster sets {count}" in answer.stderr
    answer_with(monkeypatch, deployed, **{group["name"]: count})
    assert run(str(SLURM)).stderr == ""


def test_two_files_are_compared_without_an_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importing, "deployed_environment", lambda **_: pytest.fail("AWS was asked"))

    answer = run(str(SLURM), changed(tmp_path, "capacity_gib: 19200", "capacity_gib: 9600"))

    assert answer.exit_code == 1
    assert "storage.lustre.capacity_gib" in answer.stdout
    assert run(str(SLURM), str(SLURM)).stdout == "holdfast-slurm-p5 matches the file\n"


def test_a_harmless_change_is_shown_with_its_reason(deployed: DeployedStack, tmp_path: Path) -> None:
    answer = run(changed(tmp_path, "node_recovery: Automatic", 'node_recovery: "None"'))

    assert answer.exit_code == 0
    assert "cluster.node_recovery" in answer.stdout
    assert "in place" in answer.stdout
    assert "HyperPod heeds it from the next fault on" in answer.stdout
    assert answer.stdout.endswith("1 change, none refused; holdfast check judges the file\n")


def test_a_refused_change_fails_and_says_what_to_do(deployed: DeployedStack, tmp_path: Path) -> None:
    answer = run(changed(tmp_path, "capacity_gib: 19200", "capacity_gib: 9600"))

    assert answer.exit_code == 1
    assert "refused" in answer.stdout
    assert "can grow, and never shrink" in answer.stdout
    assert answer.stdout.endswith("1 of 1 change refused\n")


def test_a_replacement_says_how_to_allow_it(deployed: DeployedStack, tmp_path: Path) -> None:
    path = changed(tmp_path, "cluster:\n", "cluster:\n  name: other\n")

    refused = run(path)
    Path(path).write_text(f"{Path(path).read_text()}\nallow_replacement: [cluster.name]\n")
    allowed = run(path)

    assert refused.exit_code == 1
    assert "to allow it, add cluster.name to allow_replacement" in refused.stdout
    assert allowed.exit_code == 0
    assert "replaces the cluster, allowed" in allowed.stdout


def test_json_carries_the_same(deployed: DeployedStack, tmp_path: Path) -> None:
    answer = run(changed(tmp_path, "capacity_gib: 19200", "capacity_gib: 9600"), "--json")

    told = json.loads(answer.stdout)
    assert answer.exit_code == 1
    assert told["stack"] == "holdfast-slurm-p5"
    assert [(change["path"], change["old"], change["new"], change["effect"]) for change in told["changes"]] == [
        ("storage.lustre.capacity_gib", 19200, 9600, "refused")
    ]
    assert [problem["severity"] for problem in told["problems"]] == ["error"]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            DeployedStack(state="absent", why="there is no stack x"),
            "there is no stack x; everything in the file is new",
        ),
        (
            DeployedStack(state="unmarked", why="no metadata"),
            "not checked: no metadata; the next deployment that changes a resource",
        ),
        (DeployedStack(state="not checked", why="AWS did not answer"), "not checked: AWS did not answer"),
    ],
)
def test_nothing_to_compare_with_is_said_plainly(
    found: DeployedStack, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, found)

    answer = run(str(SLURM))

    assert isinstance(answer.exception, CommandError)
    assert answer.exception.exit_code == 2
    assert words in str(answer.exception)


def test_without_credentials_nothing_is_checked() -> None:
    found = deployed_environment(stack_name="holdfast-x", region="us-west-2", timeout_s=0.2)

    assert found.state == "not checked"
    assert found.why == "got no AWS credentials; log in, or set AWS_PROFILE"


def test_the_guard_at_synthesis_refuses_the_same_changes(
    deployed: DeployedStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast_stacks.guard.deployed_environment", lambda **_: deployed)
    smaller = load(Path(changed(tmp_path, "capacity_gib: 19200", "capacity_gib: 9600")))

    report = check_changes(smaller, endpoint=None)

    assert len(report.errors) == 1
    assert report.errors[0].startswith("storage.lustre.capacity_gib: refused: ")
    assert check_changes(load(SLURM), endpoint=None).errors == ()


def test_the_guard_says_what_it_did_not_check(monkeypatch: pytest.MonkeyPatch) -> None:
    unasked = DeployedStack(state="not checked", why="AWS did not answer")
    monkeypatch.setattr("holdfast_stacks.guard.deployed_environment", lambda **_: unasked)
    local = load(SLURM.with_name("local.yaml"))

    assert check_changes(load(SLURM), endpoint=None).notes == ("changes are not checked: AWS did not answer",)
    assert check_changes(local, endpoint=None).notes == ("changes are not checked: no embedded AWS to ask",)
