"""
Training scripts of other repositories, ported in at most fifteen lines, end with the bits of a calm run when a rank is
killed at any moment of their life.

``scripts.yaml`` names them; none is copied into this repository. ``run.py`` has how HOLDFAST_OTHER_SCRIPTS is filled.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
HERE = Path(__file__).parent
SOURCE = os.environ.get("HOLDFAST_OTHER_SCRIPTS", "")


def _porting() -> Any:
    spec = importlib.util.spec_from_file_location("porting", HERE / "porting.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["porting"] = module
    spec.loader.exec_module(module)
    return module


PORTING = _porting()
SCRIPTS = PORTING.scripts()


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_port_is_of_fifteen_lines_or_fewer(name: str) -> None:
    assert 0 < SCRIPTS[name].changed_lines <= PORTING.MOST_LINES


@pytest.mark.skipif(not SOURCE, reason="HOLDFAST_OTHER_SCRIPTS names no folder with the training scripts")
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_ported_script_ends_as_in_a_calm_run_when_a_rank_is_killed(name: str, tmp_path: Path) -> None:
    missing = [each for each in SCRIPTS[name].needs if importlib.util.find_spec(each) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    results = HERE.parents[2] / "build" / "other-scripts.jsonl"
    command = [sys.executable, HERE / "run.py", SOURCE, "--only", f"^{name}$", "--results", results]
    done = subprocess.run([*command, "--keep", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
