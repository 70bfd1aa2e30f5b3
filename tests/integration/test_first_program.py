"""The first training program of docs/concepts/runtime.md runs as it is pasted, with the command below it."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(600)
def test_the_first_training_program_runs_as_it_is_pasted(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "concepts" / "runtime.md").read_text()
    (program,) = re.findall(r"```python\n(import torch\n.*?)```", text, re.DOTALL)
    (command,) = re.findall(r"Started with `holdfast-run ([^`]*train\.py)`", text)
    (tmp_path / "train.py").write_text(program)
    paths = [str(ROOT / "containers" / folder) for folder in ("training", "common")]
    # The launcher is a module here; as holdfast-run it is installed on nodes and in images.
    run = [sys.executable, "-m", "holdfast_runtime.launcher", "--socket", str(tmp_path / "socket")]
    launcher = subprocess.Popen(
        [*run, *shlex.split(command)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = launcher.communicate(timeout=500)
    finally:
        if launcher.poll() is None:
            os.killpg(launcher.pid, signal.SIGKILL)
            launcher.wait()

    assert launcher.returncode == 0, said
    (loss,) = re.findall(r"^loss ([\d.]+)$", said, re.MULTILINE)
    assert float(loss) < 1.0, "it learns: the loss of knowing nothing is 8"
