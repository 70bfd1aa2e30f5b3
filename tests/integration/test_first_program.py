"""The programs of the first pages run as they are pasted."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def launched(folder: Path, *, program: str, options: str) -> str:
    """The output of ``holdfast-run OPTIONS`` with a program ``train.py``, which has to end well."""
    (folder / "train.py").write_text(program)
    paths = [str(ROOT / "containers" / name) for name in ("training", "common")]
    # The launcher is a module here; as holdfast-run it is installed on nodes and in images.
    run = [sys.executable, "-m", "holdfast_runtime.launcher", "--socket", str(folder / "socket")]
    launcher = subprocess.Popen(
        [*run, *shlex.split(options)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = launcher.communicate(timeout=500)
    finally:
        if launcher.poll() is None:
            os.killpg(launcher.pid, signal.SIGKILL)
            launcher.wait()
    assert launcher.returncode == 0, output
    return output


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_the_first_training_program_runs_as_it_is_pasted(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "concepts" / "runtime.md").read_text()
    (program,) = re.findall(r"```python\n(import torch\n.*?)```", text, re.DOTALL)
    (options,) = re.findall(r"Started with `holdfast-run ([^`]*train\.py)`", text)

    (loss,) = re.findall(r"^loss ([\d.]+)$", launched(tmp_path, program=program, options=options), re.MULTILINE)

    assert float(loss) < 1.0, "it learns: the loss of knowing nothing is 8"


@pytest.mark.timeout(600)
def test_the_program_of_the_tutorial_trains(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "learn" / "my-own-job.md").read_text()
    (program,) = re.findall(r"```python\n(import torch\n.*?)```", text, re.DOTALL)

    output = launched(tmp_path, program=program, options="--nproc-per-node 2 --spares 1 train.py")

    losses = [float(loss) for loss in re.findall(r"step \d+ loss ([\d.]+)", output)]
    assert len(losses) == 400
    assert losses[-1] < losses[0] / 10
