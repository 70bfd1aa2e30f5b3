"""The binaries of Kubernetes from Debian's source package, with a build that is killed while it compiles."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import eventually

MOST_CPU_S = 15 * 60
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(5400),
    pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt-get"),
]


def test_a_build_that_is_killed_while_it_compiles_goes_on_and_ends(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "holdfast"), "kubernetes", "build", "--json"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "HOLDFAST_KUBERNETES": ""}
    cache = tmp_path / "holdfast" / "kubernetes"

    def compiled() -> int:
        return sum(len(list(folder.iterdir())) for folder in cache.glob(".work-*/cache/??"))

    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True) as building:
        eventually(lambda: list(cache.glob(".work-*/done/describe.json")), "the definitions", within_s=1800)
        before = compiled()
        eventually(lambda: compiled() > before + 100, "a part of the compilation", within_s=1800)
        building.send_signal(signal.SIGKILL)
    assert [path.name for path in cache.iterdir() if not path.name.startswith(".")] == []

    told = json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=3600).stdout)

    assert told["version"] == "1.20.2"
    assert told["tried"]
    assert told["attempts"] == 2
    assert told["cpu_s"] < MOST_CPU_S
    assert sorted(path.name for path in cache.iterdir()) == [".lock", Path(told["directory"]).name]
