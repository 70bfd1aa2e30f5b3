"""``holdfast-run`` as a command: in the wheel, in the image and on each node."""

import os
import subprocess
from pathlib import Path

import tomllib

from holdfast_lifecycle.steps import job_environment


def test_the_launcher_is_a_program_of_each_node(tmp_path: Path) -> None:
    program = tmp_path / "holdfast-run"
    program.write_text(job_environment._LAUNCH)
    program.chmod(job_environment._MODES[job_environment._LAUNCHER])
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\necho "$PYTHONPATH" "$@"\n')
    python.chmod(0o755)

    def run(**variables: str) -> str:
        environment = {"PATH": f"{tmp_path}:{os.defpath}", **variables}
        command = [str(program), "a b.py", "--x"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert run() == "/opt/holdfast/lib -m holdfast_runtime.launcher a b.py --x"
    assert run(PYTHONPATH="minGPT") == "minGPT:/opt/holdfast/lib -m holdfast_runtime.launcher a b.py --x"


def test_image_and_node_start_it_in_the_same_way(repository: Path) -> None:
    image = (repository / "containers/training/holdfast-run").read_text().splitlines()
    assert image[-1] == job_environment._LAUNCH.splitlines()[-1]


def test_the_wheel_has_each_command_that_a_checkout_has(repository: Path) -> None:
    scripts = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["scripts"]
    linked = (repository / "scripts/link_packages.py").read_text()
    assert {name: f'"{name}": "{target.partition(":")[0]}"' in linked for name, target in scripts.items()} == {
        "holdfast": True,
        "holdfast-run": True,
    }
