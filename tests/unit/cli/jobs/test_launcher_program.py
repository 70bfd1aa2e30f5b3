"""``holdfast-run`` as a command: in the wheel, in the image and on each node."""

import os
import subprocess
import sys
from pathlib import Path

import tomllib

from holdfast_lifecycle.steps import job_environment
from holdfast_runtime.launcher.interpreter import OLDEST, REQUIREMENTS, missing, too_old


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
    image = (repository / "containers/training/holdfast-run").read_text()
    comment = "# Written by holdfast_lifecycle at node creation; changes are lost.\n"
    assert job_environment._LAUNCH.replace(comment, "") == image


def start(path: str, **variables: str) -> tuple[int, str]:
    command = ["/bin/sh", "-c", job_environment._LAUNCH, "holdfast-run", "train.py"]
    done = subprocess.run(command, env={"PATH": path, **variables}, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_an_empty_path_is_refused_in_one_line() -> None:
    said = "holdfast-run: got PATH='', without a python3; activate an environment, or add /usr/bin to PATH\n"
    assert start("") == (2, said)


def test_an_environment_whose_interpreter_this_node_lacks_is_refused_and_no_other_python_is_taken(
    tmp_path: Path,
) -> None:
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python3").symlink_to("/usr/bin/python3.99")
    code, said = start(f"{programs}:{os.defpath}")
    assert code == 2
    assert said.startswith(f"holdfast-run: {programs}/python3 leads to /usr/bin/python3.99, which is not on this node")
    assert said.count("\n") == 1


def test_an_environment_that_this_node_lacks_is_refused(tmp_path: Path) -> None:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        code, said = start(f"{tmp_path}/bin:{os.defpath}", **{name: str(tmp_path)})
        assert code == 2
        assert said.startswith(f"holdfast-run: there is no {tmp_path}/bin/python3 on this node; make it again")


def test_a_python_without_what_the_runtime_imports_is_refused_with_the_package_and_the_command() -> None:
    said = missing(("torch", "no_such_module.part"), executable="/fsx/venv/bin/python3")
    assert (
        said == "/fsx/venv/bin/python3 has no no_such_module; run: /fsx/venv/bin/python3 -m pip install no_such_module"
    )


def test_packages_for_another_python_are_told_from_missing_ones(tmp_path: Path) -> None:
    (tmp_path / "lib" / "python3.99" / "site-packages").mkdir(parents=True)
    said = missing(("no_such_module",), prefix=str(tmp_path), executable="/fsx/venv/bin/python3")
    assert f"the packages of {tmp_path} are for python3.99" in said


def test_an_old_python_is_refused() -> None:
    assert too_old((3, 10, 0)) == ""
    assert too_old((3, 9, 18), executable="/fsx/venv/bin/python3") == (
        "/fsx/venv/bin/python3 is Python 3.9; allowed: 3.10 or newer; make the environment with a newer Python"
    )


def test_the_launcher_names_what_the_distribution_requires(repository: Path) -> None:
    wheels = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["holdfast"]["distributions"]
    required = {name for name in wheels["holdfast-runtime"]["requires"] if not name.startswith("holdfast-")}
    assert required == set(REQUIREMENTS.values())
    assert wheels["holdfast-runtime"]["python"] == f">={OLDEST[0]}.{OLDEST[1]}"


def test_each_command_of_a_checkout_is_in_one_wheel(repository: Path) -> None:
    wheels = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["holdfast"]["distributions"]
    commands = [name for wheel in wheels.values() for name in wheel.get("scripts", {})]

    assert sorted(commands) == ["holdfast", "holdfast-agent", "holdfast-run", "hyperpodrun"]
    assert all((Path(sys.executable).parent / name).is_file() for name in commands)
