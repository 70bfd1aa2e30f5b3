"""The wheel holds all that the constructs need: another app installs it and synthesises, far from this checkout."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A folder with the content of the wheel, as pip would have put it into site-packages."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repository, capture_output=True, check=True, timeout=60,
    ).stdout.decode()  # fmt: skip
    for name in files.split("\0"):
        if name and (repository / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((repository / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, source],
        check=True, timeout=110,
    )  # fmt: skip
    (wheel,) = folder.glob("holdfast-*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def synthesise(app: Path, *, site: Path, out: Path, repository: Path) -> subprocess.CompletedProcess[str]:
    """Run an app with the wheel's content before everything else, and nothing of the checkout."""
    hide = (
        f"import sys; sys.path = [p for p in sys.path if not p.startswith({str(repository)!r}) or 'site-packages' in p]"
    )
    run = f"{hide}; sys.path[:0] = [{str(site)!r}]; import runpy; runpy.run_path({str(app)!r}, run_name='__main__')"
    environment = {**os.environ, "CDK_OUTDIR": str(out), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        [sys.executable, "-P", "-c", run], cwd=app.parent, env=environment, capture_output=True, text=True, timeout=110
    )


def test_another_app_synthesises_a_cluster_from_the_wheel(installed: Path, repository: Path, tmp_path: Path) -> None:
    app = tmp_path / "reuse_app"
    app.mkdir()
    for file in ("app.py", "on_init_complete.sh"):
        (app / file).write_bytes((repository / "examples/reuse_app" / file).read_bytes())

    done = synthesise(app / "app.py", site=installed, out=tmp_path / "out", repository=repository)

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

    done = synthesise(app / "app.py", site=installed, out=tmp_path / "out", repository=repository)

    assert done.returncode != 0
    assert "HF4" in done.stdout + done.stderr
    assert "Controller" in done.stdout + done.stderr
