"""Tests that are interrupted leave nothing, as `make test` runs them: in workers of xdist."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LIMIT_S, eventually

from holdfast.localcloud.nodes.kernel import proc

pytestmark = [pytest.mark.root, pytest.mark.e2e]

CASES = ("with_teardown", "without_teardown")


def traces(home: Path) -> list[str]:
    """Processes and mounts of a home; a process inside a node names the home in its overlay mount."""
    found = [f"mount {line}" for line in Path("/proc/mounts").read_text().splitlines() if str(home) in line]
    found += [f"in a node: {pid}" for pid in proc.users_of_overlays_below(home / "nodes")]
    for pid in proc.pids():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(home) in words:
            found.append(f"process {pid}: {words}")
    return found


def is_left(home: Path) -> bool:
    return bool(traces(home)) or (home.exists() and any(home.iterdir()))


@pytest.mark.parametrize(
    ("sign", "to_all", "interrupts"),
    [
        pytest.param(signal.SIGINT, True, "default", id="ctrl-c"),
        pytest.param(signal.SIGINT, False, "default", id="sigint"),
        pytest.param(signal.SIGTERM, False, "default", id="sigterm"),
        pytest.param(signal.SIGTERM, False, "ignore", id="sigterm-in-the-background-of-a-shell"),
        pytest.param(signal.SIGKILL, False, "default", id="sigkill"),
    ],
)
def test_nothing_is_left(repository: Path, tmp_path: Path, sign: signal.Signals, to_all: bool, interrupts: str) -> None:
    files = [str(repository / f"tests/cases/interrupted/{name}.py") for name in CASES]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses", "2"]
    with (tmp_path / "output").open("w") as output:
        tests = subprocess.Popen(
            ["env", f"--{interrupts}-signal=INT", *command, "--dist", "loadfile", *files],
            cwd=repository,
            env={**os.environ, "TELL": str(tmp_path)},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    homes = [tmp_path / f"{name}.home" for name in CASES]
    try:
        eventually(lambda: tests.poll() is not None or all(path.exists() and path.read_text() for path in homes))
        assert tests.poll() is None, (tmp_path / "output").read_text()
        (os.killpg if to_all else os.kill)(tests.pid, sign)
        tests.wait(LIMIT_S)
    finally:
        tests.kill()
        tests.wait()

    eventually(lambda: not any(is_left(Path(path.read_text())) for path in homes), "the end of what tests started")
    assert (tmp_path / "closed").exists(), "the fixture was not let to clear away"
