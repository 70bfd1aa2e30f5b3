"""Another app synthesises with the constructs' wheel and what it asks for: no moto, no torch, no command line."""

import json
import shutil
from pathlib import Path

import pytest
from clean_environment import CleanEnvironment

from build_wheels import build

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    folder = tmp_path_factory.mktemp("constructs")
    build(folder / "wheels")
    return CleanEnvironment(folder / "venv", distribution="holdfast-constructs", wheels=folder / "wheels")


def test_another_app_synthesises_a_cluster_from_the_wheel(
    environment: CleanEnvironment, repository: Path, tmp_path: Path
) -> None:
    app = shutil.copytree(repository / "examples/reuse_app", tmp_path / "app")
    absent = "moto", "torch", "typer", "holdfast.cli", "holdfast.localcloud", "holdfast_runtime"
    search = f"from importlib.util import find_spec; print([name for name in {absent} if find_spec(name)])"

    found = environment.run("python", "-c", search, cwd=app)
    done = environment.run("python", "app.py", cwd=app, CDK_OUTDIR=str(tmp_path / "out"))

    assert found.stdout.strip() == "[]", found.stderr
    assert done.returncode == 0, done.stderr
    template = json.loads((tmp_path / "out/Research.template.json").read_text())
    kinds = [resource["Type"] for resource in template["Resources"].values()]
    assert kinds.count("AWS::SageMaker::Cluster") == 1
    assert "AWS::EC2::VPCEndpoint" in kinds


@pytest.mark.e2e
def test_a_mistake_in_another_app_fails_its_synth_with_a_code(
    environment: CleanEnvironment, repository: Path, tmp_path: Path
) -> None:
    app = shutil.copytree(repository / "examples/reuse_app", tmp_path / "app")
    text = (app / "app.py").read_text()
    (app / "app.py").write_text(
        text.replace('node_type="Compute"', 'node_type="Controller"').replace(', partition="trn"', "")
    )

    done = environment.run("python", "app.py", cwd=app, CDK_OUTDIR=str(tmp_path / "out"))

    assert done.returncode != 0
    assert "HF4" in done.stdout + done.stderr
    assert "Controller" in done.stdout + done.stderr
