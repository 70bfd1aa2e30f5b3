"""Each wheel does its work in an environment that has it and what it asks for, and nothing else."""

import functools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest
from clean_environment import DEADLINE_S, CleanEnvironment

from build_wheels import build
from distributions import distributions

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2 * DEADLINE_S)]

ABSENT = {
    "holdfast-common": ("holdfast", "numpy", "yaml", "boto3"),
    "holdfast-agent": ("holdfast", "holdfast_runtime", "numpy", "yaml", "boto3"),
    "holdfast-operator": ("holdfast", "holdfast_runtime", "holdfast_agent", "numpy", "boto3"),
    "holdfast-runtime": ("holdfast", "aws_cdk", "boto3", "moto", "pydantic", "yaml"),
    "holdfast-rules": ("aws_cdk", "holdfast_constructs", "holdfast_runtime", "moto", "torch", "typer"),
    "holdfast-constructs": ("holdfast.cli", "holdfast.localcloud", "holdfast_runtime", "moto", "torch", "typer"),
    "holdfast-hyperpod": ("aws_cdk", "holdfast_constructs", "holdfast_runtime", "holdfast_stacks", "torch"),
}
"""What is not in the environment of a wheel, ours and others'."""
PROGRAM = """\
import torch

import holdfast_runtime as holdfast

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
run = holdfast.Run(model, optimizer)
for step in run.steps(5):
    with step:
        loss = model(torch.ones(1, 2)).square().sum()
        loss.backward()
        step.update(loss)
        if run.is_logger:
            print("step", step.number)
"""

Made = Callable[[str], CleanEnvironment]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    build(folder)
    return folder


@pytest.fixture(scope="module")
def made(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    @functools.cache
    def make(name: str) -> CleanEnvironment:
        return CleanEnvironment(tmp_path_factory.mktemp(name) / "venv", distribution=name, wheels=wheels)

    return make


@pytest.mark.parametrize("name", distributions())
def test_what_a_wheel_offers_can_be_imported_with_what_it_asks_for(name: str, made: Made, tmp_path: Path) -> None:
    environment = made(name)
    environment.check()
    packages = distributions()[name].packages
    program = tmp_path / "imports.py"
    program.write_text(
        "import importlib, importlib.util, pkgutil\n"
        f"for name in {packages}:\n"
        "    package = importlib.import_module(name)\n"
        "    for each in getattr(package, '__all__', ()):\n"
        "        getattr(package, each)\n"
        f"for name in {ABSENT[name]}:\n"
        "    try:\n"
        "        found = importlib.util.find_spec(name)\n"
        "    except ModuleNotFoundError:\n"
        "        found = None\n"
        "    assert found is None, f'{name} is in {found}'\n"
    )

    done = environment.run("python", str(program), cwd=tmp_path)

    assert done.returncode == 0, done.stderr


def test_pip_install_of_a_checkout_has_the_files_and_commands_of_all_wheels(
    wheels: Path, tmp_path: Path, repository: Path
) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--wheel-dir", tmp_path, repository], check=True, timeout=DEADLINE_S)

    (whole,) = tmp_path.glob("*.whl")
    assert _files(whole) == set().union(*map(_files, wheels.glob("*.whl")))
    assert _commands(whole) == set().union(*map(_commands, wheels.glob("*.whl")))


def _files(wheel: Path) -> set[str]:
    return {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}


def _commands(wheel: Path) -> set[str]:
    named = [name for name in ZipFile(wheel).namelist() if name.endswith(".dist-info/entry_points.txt")]
    return {line for name in named for line in ZipFile(wheel).read(name).decode().splitlines() if " = " in line}


def test_the_runtime_trains_in_an_environment_without_the_cdk(made: Made, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)

    done = made("holdfast-runtime").run("holdfast-run", "--nproc-per-node", "2", "train.py", cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "step 4" in done.stdout + done.stderr


def test_the_stacks_find_what_nodes_and_images_get(made: Made, repository: Path, tmp_path: Path) -> None:
    shutil.copytree(repository / "environments", tmp_path / "environments")
    shutil.copy(repository / "app.py", tmp_path)
    context = json.dumps({"environment": "minimal"})
    (tmp_path / "cdk.out").mkdir()

    here = made("holdfast-constructs").run(
        "python", "app.py", cwd=tmp_path, CDK_OUTDIR=str(tmp_path / "cdk.out"), CDK_CONTEXT_JSON=context
    )

    assert here.returncode == 0, here.stdout + here.stderr
    bundles = {path.name for path in (tmp_path / "cdk.out").rglob("on_*.sh")}
    assert bundles >= {"on_create.sh", "on_init_complete.sh"}


def test_the_command_line_checks_an_environment_without_the_cdk(made: Made, repository: Path, tmp_path: Path) -> None:
    environments = shutil.copytree(repository / "environments", tmp_path / "environments")
    holdfast = made("holdfast-hyperpod")

    told = holdfast.run("holdfast", "--help", cwd=tmp_path)
    version = holdfast.run("holdfast", "--version", cwd=tmp_path)
    checked = holdfast.run("holdfast", "check", str(environments / "minimal.yaml"), cwd=tmp_path)
    explained = holdfast.run("holdfast", "explain", "HF041", cwd=tmp_path)

    assert told.returncode == 0, told.stderr
    assert version.stdout.split() == ["holdfast", distributions()["holdfast-hyperpod"].version]
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "fix: add NodesRoute to DependsOn of Cluster" in explained.stdout, explained.stderr


def test_the_page_says_how_large_the_wheels_are(wheels: Path, repository: Path) -> None:
    text = (repository / "docs/reference/distributions.md").read_text()
    said = {name: float(size) for name, size in re.findall(r"^\| `(holdfast-\w+)` \| (\d+) kB \|", text, re.MULTILINE)}
    sizes = {path.name.split("-")[0].replace("_", "-"): path.stat().st_size / 1000 for path in wheels.iterdir()}

    assert sizes == pytest.approx(said, rel=0.25)
