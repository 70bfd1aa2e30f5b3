"""From an empty folder to a rehearsed node loss, by the commands of docs/learn/own-repository.md, from wheels alone."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from clean_environment import DEADLINE_S, CleanEnvironment
from ports import free_port
from waiting import eventually

from build_wheels import build
from holdfast.cli.repository import Answers, repository_files, write_repository

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(2 * DEADLINE_S)]


@dataclass(frozen=True, kw_only=True)
class Newcomer:
    """A user in a folder of their own, with wheels and no checkout."""

    environment: CleanEnvironment
    folder: Path
    home: Path
    port: int

    def run(self, *arguments: str) -> str:
        """Run a command that succeeds. Returns its standard output."""
        done = self.attempt(*arguments)
        assert done.returncode == 0, f"holdfast {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def attempt(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        variables = {"HOLDFAST_HOME": str(self.home), "HOLDFAST_PORT": str(self.port)}
        return self.environment.run("holdfast", *arguments, cwd=self.folder, **variables)

    def steps(self) -> list[int]:
        """Steps that the job has reported, in their order."""
        events = [json.loads(line) for line in self.run("events", "--json").splitlines()]
        return [event["detail"]["step"] for event in events if event["kind"] == "job_progress"]

    def nodes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.run("status", "--json"))["nodes"]
        return found


@pytest.fixture
def newcomer(repository: Path, tmp_path: Path, traces: Any) -> Iterator[Newcomer]:
    build(tmp_path / "wheels")
    environment = CleanEnvironment(
        tmp_path / "venv",
        distribution="holdfast-hyperpod",
        beside=("holdfast-constructs", "holdfast-runtime"),
        wheels=tmp_path / "wheels",
        for_nodes=True,
    )
    folder = tmp_path / "own"
    folder.mkdir()
    user = Newcomer(environment=environment, folder=folder, home=tmp_path / "home", port=free_port())
    try:
        # Beside cdk.json, as npm installs it: the test needs no network.
        (folder / "node_modules").symlink_to(repository / "node_modules")
        yield user
    finally:
        user.run("down")
    assert traces(user.home) == set()
    assert not user.home.exists()


def test_an_empty_folder_becomes_a_rehearsed_node_loss_by_the_commands_of_the_page(
    newcomer: Newcomer, repository: Path
) -> None:
    page = (repository / "docs/learn/own-repository.md").read_text()
    for command in commands(page, "Start"):
        newcomer.run(*command)
    up, submit, status, (kill_node, _), incidents, down = commands(page, "Rehearse")
    newcomer.run(*up)
    newcomer.run(*submit)
    eventually(newcomer.steps, "progress of the job")
    assert "train" in newcomer.run(*status)

    workers = [node for node in newcomer.nodes() if node["instance_group"] == "workers"]
    killed = json.loads(newcomer.run(kill_node, workers[0]["instance_id"], "--json"))["instance_id"]
    reached = newcomer.steps()[-1]

    eventually(lambda: newcomer.steps()[-1] > reached, "progress after the loss")
    replaced = eventually(
        lambda: [node for node in newcomer.nodes() if node["instance_id"] != killed] if _is_whole(newcomer) else [],
        "the replacement",
    )
    assert len(replaced) == 6
    assert "repaired" in newcomer.run(*incidents)
    assert "node_lost" in {json.loads(line)["kind"] for line in newcomer.run("events", "--json").splitlines()}
    newcomer.run(*down)


def commands(page: str, heading: str) -> list[list[str]]:
    """Arguments of ``holdfast`` in the first block of shell below a heading of a page, in their order."""
    block = page.partition(f"\n## {heading}\n")[2].partition("```sh\n")[2].partition("```")[0]
    return [words.split() for words in re.findall(r"^(?:sudo \.venv/bin/)?holdfast (.*)", block, re.MULTILINE)]


def test_without_the_stacks_wheel_up_names_the_package_to_install(tmp_path: Path) -> None:
    build(tmp_path / "wheels")
    environment = CleanEnvironment(tmp_path / "venv", distribution="holdfast-hyperpod", wheels=tmp_path / "wheels")
    variables = {"HOLDFAST_HOME": str(tmp_path / "home"), "HOLDFAST_PORT": str(free_port())}

    done = environment.run("holdfast", "up", "local", cwd=tmp_path, **variables)

    assert done.returncode == 2
    assert "pip install holdfast-constructs==" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "home").exists()


def test_the_python_files_of_a_new_repository_pass_mypy_strict(tmp_path: Path) -> None:
    write_repository(tmp_path, repository_files(Answers(name="lab"), version="0.1.0"))

    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "app.py", "tests", "jobs"],
        cwd=tmp_path, capture_output=True, text=True, timeout=2 * DEADLINE_S,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr


def _is_whole(newcomer: Newcomer) -> bool:
    nodes = newcomer.nodes()
    return len(nodes) == 6 and {node["status"] for node in nodes} == {"Running"}
