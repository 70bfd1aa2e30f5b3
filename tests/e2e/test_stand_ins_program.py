"""The tests in Go of the stand-ins' program: its protocols and its pure parts, compiled in the tree of Kubernetes."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import holdfast.localcloud.kubernetes.stand_ins as room

if TYPE_CHECKING:
    from holdfast.localcloud.kubernetes.binaries import Binaries

pytestmark = [pytest.mark.kubernetes, pytest.mark.e2e]

FOLDER = "go/src/k8s.io/kubernetes/cmd/stand-ins-under-test"
LIMIT_S = 900


@pytest.fixture
def work(binaries: "Binaries") -> Path:
    """What a build left behind: Go and the sources."""
    there = binaries.directory
    for candidate in (there.parent / f".work-{there.name}", there / ".work"):
        if (candidate / "go" / "src").is_dir():
            return candidate
    pytest.skip("no sources of Kubernetes: holdfast kubernetes build --keep-work")


def test_the_program_passes_its_tests_in_go(work: Path, tmp_path: Path) -> None:
    go = next(work.glob("tree/usr/lib/go-*"))
    files = [*Path(room.__file__).parent.glob("program/*.go"), *Path(__file__).parent.glob("stand_ins_program/*.go")]
    # Nothing is written to the sources: an overlay shows files that are not there.
    overlay = {"Replace": {str(work / FOLDER / path.name): str(path) for path in files}}
    (tmp_path / "overlay.json").write_text(json.dumps(overlay))
    # Files of the compiler's cache never change, so it is shared; what is compiled here goes to the copy alone.
    shutil.copytree(work / "cache", tmp_path / "cache", copy_function=_share)
    environment = {
        "PATH": f"{go}/bin:{os.environ['PATH']}", "HOME": str(tmp_path), "GOROOT": str(go), "GOPATH": str(work / "go"),
        "GOCACHE": str(tmp_path / "cache"), "GO111MODULE": "off", "CGO_ENABLED": "0", "GOFLAGS": "-trimpath",
    }  # fmt: skip
    program = tmp_path / "stand-ins-under-test"
    made = ["go", "test", "-c", "-vet=off", "-overlay", str(tmp_path / "overlay.json"), "-o", str(program)]
    for argv in ([*made, f"k8s.io/kubernetes/cmd/{Path(FOLDER).name}"], [str(program), "-test.v"]):
        where = work / "go" / "src" / "k8s.io" / "kubernetes" if argv[0] == "go" else tmp_path
        done = subprocess.run(
            argv, cwd=where, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "--- PASS: TestAPluginFollowsTheKubeletThroughItsRestarts" in done.stdout


def _share(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
