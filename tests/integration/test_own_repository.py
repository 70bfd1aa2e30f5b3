"""The repository that ``holdfast init`` writes passes its own checks, and a mistake in it fails them with its line."""

import contextlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.repository import Answers, repository_files, write_repository

DEADLINE_S = 400


@pytest.fixture
def own(tmp_path: Path) -> Path:
    files = repository_files(Answers(name="lab"), version="0.1.0")
    write_repository(tmp_path / "own", files)
    return tmp_path / "own"


def run(own: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    return subprocess.run(
        command, cwd=own, env={**environment, "PATH": path}, capture_output=True, text=True, timeout=DEADLINE_S
    )


@pytest.mark.e2e
def test_the_recorded_templates_hold_and_ci_passes_with_a_report(own: Path) -> None:
    (own / "environments/local.yaml").unlink()  # one synthesis less

    recorded = run(own, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--snapshot-update")
    checked = run(own, "ci/check.sh")

    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    (snapshot,) = (own / "tests/__snapshots__").rglob("*.json")
    kinds = {one["Type"] for one in json.loads(snapshot.read_text())["Resources"].values()}
    assert "AWS::SageMaker::Cluster" in kinds
    assert checked.returncode == 0, checked.stdout + checked.stderr
    report = (own / "report.md").read_text()
    assert [line for line in report.splitlines() if line.startswith("### ")] == [
        "### check: lab",
        "### templates",
    ]


def test_a_mistake_in_an_environment_file_is_found_with_its_line(own: Path) -> None:
    file = own / "environments/lab.yaml"
    file.write_text(file.read_text().replace("ml.p5.48xlarge", "ml.p5.48xlrge"))
    line = 1 + file.read_text()[: file.read_text().index("ml.p5.48xlrge")].count("\n")

    done = run(own, "holdfast", "check", "environments/lab.yaml", "--offline")

    assert done.returncode != 0
    assert f"environments/lab.yaml:{line}" in done.stdout + done.stderr


@pytest.mark.parametrize("answered", [0, *(pytest.param(each, marks=pytest.mark.e2e) for each in (1, 2)), 3])
def test_ctrl_c_at_a_question_leaves_nothing(answered: int, tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    command = [sys.executable, "-c", "from holdfast.cli import main; main()", "init", str(tmp_path / "own")]
    child = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
                             preexec_fn=_own_terminal)  # fmt: skip
    os.close(terminal)
    shown = b""
    try:
        for asked in range(answered + 1):
            while shown.count(b"]: ") <= asked:
                shown += os.read(controller, 4096)
            os.write(controller, b"\n" if asked < answered else b"\x03")
        assert _pressed_until_it_ends(child, controller) == 130
    finally:
        child.kill()
        os.close(controller)
    assert list(tmp_path.iterdir()) == []


def _pressed_until_it_ends(child: subprocess.Popen[bytes], controller: int) -> int:
    """Press Ctrl-C again: Python looks at a signal that came just before it waits for a key at the next key only."""
    for _ in range(DEADLINE_S):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(timeout=1)
        with contextlib.suppress(OSError):  # it ended meanwhile
            os.write(controller, b"\x03")
    raise AssertionError("Ctrl-C does not end it")


def _own_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
