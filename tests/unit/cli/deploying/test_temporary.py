"""Temporary files of the CDK, of jsii and of the app: in the home, and gone with the last child, however it ends."""

import json
import signal
import tempfile
import time
from pathlib import Path

import pytest

from holdfast.cli.deploying import Cdk
from holdfast.cli.terminal import Interrupted

APP = """
import os, tempfile, time
from pathlib import Path
folder = tempfile.mkdtemp(prefix="of-the-app-")
Path(folder, "big").write_text("x")
if os.fork() == 0:
    tempfile.mkdtemp(prefix="of-jsii-")
Path(os.environ["CDK_OUTDIR"] + ".said").write_text(folder)
time.sleep(600)
"""


@pytest.fixture
def cdk(tmp_path: Path) -> Cdk:
    project = tmp_path / "project"
    (project / "environments").mkdir(parents=True)
    (project / "app.py").write_text(APP)
    (project / "cdk.json").write_text(json.dumps({}))
    home = tmp_path / "home"
    home.mkdir()
    return Cdk(environment_file=project / "environments/local.yaml", variables={}, work=home)


def told(cdk: Cdk) -> Path:
    """The folder that the app has made."""
    said = cdk.assembly.with_suffix(".out.said")
    deadline = time.monotonic() + 60
    while not said.exists() or not said.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return Path(said.read_text())


def of_tests() -> set[str]:
    names = {path.name for path in Path(tempfile.gettempdir()).iterdir()}
    return {name for name in names if name.startswith(("of-the-app-", "of-jsii-"))}


def test_an_interrupt_leaves_nothing_of_a_synth_in_tmp_nor_in_the_home(cdk: Cdk) -> None:
    child = cdk.start_synth()
    folder = told(cdk)
    assert folder.parent == cdk.temporary
    assert folder.exists()

    def interrupt() -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        cdk.wait(child, what="cdk synth", progress=interrupt)

    assert child.returncode == -signal.SIGTERM
    assert not cdk.temporary.exists()
    assert of_tests() == set()


def test_files_of_a_child_that_still_runs_stay_until_it_has_ended(cdk: Cdk) -> None:
    first = cdk.start_synth()
    folder = told(cdk)
    second = cdk.start_synth()

    cdk.end(second)
    stayed = folder.exists()
    cdk.end(first)

    assert stayed
    assert not cdk.temporary.exists()
