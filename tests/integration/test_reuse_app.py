"""The wheel holds all that the constructs need: another app installs it and synthesises, far from this checkout."""

import json
from pathlib import Path

import pytest
from wheel_of_checkout import installed_wheel, run_with_wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the content of the wheel, as pip would have put it into site-packages."""
    return installed_wheel(tmp_path_factory.mktemp("wheel"))


def test_another_app_synthesises_a_cluster_from_the_wheel(installed: Path, repository: Path, tmp_path: Path) -> None:
    app = tmp_path / "reuse_app"
    app.mkdir()
    for file in ("app.py", "on_init_complete.sh"):
        (app / file).write_bytes((repository / "examples/reuse_app" / file).read_bytes())

    done = run_with_wheel(app / "app.py", site=installed, out=tmp_path / "out", repository=repository)

    assert done.returncode == 0, done.stderr
    template = json.loads((tmp_path / "out/Research.template.json").read_text())
    kinds = [resource["Type"] for resource in template["Resources"].values()]
    assert kinds.count("AWS::SageMaker::Cluster") == 1
    assert "AWS::EC2::VPCEndpoint" in kinds


def test_a_mistake_in_another_app_fails_its_synth_with_a_code(
    installed: Path, repository: Path, tmp_path: Path
) -> None:
    app = tmp_path / "reuse_app"
    app.mkdir()
    script = "on_init_complete.sh"
    (app / script).write_bytes((repository / "examples/reuse_app" / script).read_bytes())
    text = (repository / "examples/reuse_app/app.py").read_text()
    (app / "app.py").write_text(
        text.replace('node_type="Compute"', 'node_type="Controller"').replace(', partition="trn"', "")
    )

    done = run_with_wheel(app / "app.py", site=installed, out=tmp_path / "out", repository=repository)

    assert done.returncode != 0
    assert "HF4" in done.stdout + done.stderr
    assert "Controller" in done.stdout + done.stderr
