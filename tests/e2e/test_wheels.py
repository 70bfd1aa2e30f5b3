"""Each wheel does its work in an environment that has it and what it asks for, and nothing else."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from clean_environment import DEADLINE_S, CleanEnvironment

from build_wheels import build
from distributions import distributions

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2 * DEADLINE_S)]

NEEDED = {
    "holdfast-common": (),
    "holdfast-runtime": ("holdfast-common",),
    "holdfast-rules": ("holdfast-common",),
    "holdfast-constructs": ("holdfast-common", "holdfast-rules"),
    "holdfast-hyperpod": ("holdfast-common", "holdfast-rules"),
}
"""What of ours a wheel brings along."""
ABSENT = {
    "holdfast-common": ("holdfast", "numpy", "yaml", "boto3"),
    "holdfast-runtime": ("holdfast", "aws_cdk", "boto3", "moto", "pydantic", "yaml"),
    "holdfast-rules": ("aws_cdk", "holdfast_constructs", "holdfast_runtime", "moto", "torch", "typer"),
    "holdfast-constructs": ("holdfast.cli", "holdfast.localcloud", "holdfast_runtime", "moto", "torch", "typer"),
    "holdfast-hyperpod": ("aws_cdk", "holdfast_constructs", "holdfast_runtime", "holdfast_stacks", "torch"),
}
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
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    built = build(tmp_path_factory.mktemp("wheels"))
    return {wheel.name.split("-")[0].replace("_", "-"): wheel for wheel in built}


@pytest.fixture(scope="module")
def made(wheels: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Made:
    there: dict[str, CleanEnvironment] = {}

    def make(name: str) -> CleanEnvironment:
        if name not in there:
            chosen = [wheels[each] for each in (name, *NEEDED[name])]
            there[name] = CleanEnvironment(tmp_path_factory.mktemp(name) / "venv", wheels=chosen)
        return there[name]

    return make


@pytest.mark.parametrize("name", distributions())
def test_a_wheel_imports_all_of_its_modules_with_what_it_asks_for(name: str, made: Made, tmp_path: Path) -> None:
    environment = made(name)
    environment.check()
    packages = distributions()[name].packages
    program = tmp_path / "imports.py"
    program.write_text(
        "import importlib, importlib.util, pkgutil\n"
        f"for name in {packages}:\n"
        "    package = importlib.import_module(name)\n"
        "    for each in getattr(package, '__all__', ()):\n"
        "        getattr(package, each, None)\n"
        f"for name in {ABSENT[name]}:\n"
        "    try:\n"
        "        found = importlib.util.find_spec(name)\n"
        "    except ModuleNotFoundError:\n"
        "        found = None\n"
        "    assert found is None, f'{name} is in {found}'\n"
    )

    done = environment.run("python", str(program), cwd=tmp_path)

    assert done.returncode == 0, done.stderr


def test_the_runtime_trains_in_an_environment_without_the_cdk(made: Made, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)

    done = made("holdfast-runtime").run("holdfast-run", "--nproc-per-node", "2", "train.py", cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "step 4" in done.stdout + done.stderr


def test_another_app_synthesises_in_an_environment_without_moto(made: Made, repository: Path, tmp_path: Path) -> None:
    app = shutil.copytree(repository / "examples/reuse_app", tmp_path / "app")

    done = made("holdfast-constructs").run("python", "app.py", cwd=app, CDK_OUTDIR=str(tmp_path / "out"))

    assert done.returncode == 0, done.stdout + done.stderr
    template = json.loads((tmp_path / "out/Research.template.json").read_text())
    kinds = [resource["Type"] for resource in template["Resources"].values()]
    assert kinds.count("AWS::SageMaker::Cluster") == 1


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

    assert told.returncode == 0, told.stderr
    assert version.stdout.split() == ["holdfast", distributions()["holdfast-hyperpod"].version]
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_page_says_how_large_the_wheels_are(wheels: Mapping[str, Path], repository: Path) -> None:
    said = dict(
        line.strip("| ").split(" kB")[0].replace("`", "").split(" | ")
        for line in (repository / "docs/distributions.md").read_text().splitlines()
        if " kB |" in line
    )

    assert sorted(said) == sorted(distributions())
    for name, size in said.items():
        assert wheels[name].stat().st_size / 1000 == pytest.approx(float(size), rel=0.25), name
