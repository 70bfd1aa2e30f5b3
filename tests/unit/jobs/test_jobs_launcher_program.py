"""``holdfast-run`` as a command: in the wheel, in the image and on each node."""

import os
import subprocess
import sys
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


def test_each_command_of_a_checkout_is_in_one_wheel(repository: Path) -> None:
    wheels = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["holdfast"]["distributions"]
    commands = [name for wheel in wheels.values() for name in wheel.get("scripts", {})]

    assert sorted(commands) == ["holdfast", "holdfast-agent", "holdfast-run"]
    assert all((Path(sys.executable).parent / name).is_file() for name in commands)
