"""Two real ranks over gloo: one is killed, the run is repeated, and nothing of the result differs."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from ports import free_port
from waiting import eventually
from warm import Program, Warm, warm

from holdfast_common import Event, kinds, parse_events

pytestmark = pytest.mark.e2e

pytest.importorskip("torch")
REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "examples/bytelm"
STEPS = 24


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    subprocess.run([sys.executable, FOLDER / "prepare.py", "--out", folder], check=True, timeout=60)
    return folder


class Run:
    """A folder for checkpoints and events, in which attempts are made."""

    def __init__(self, folder: Path, data: Path, ready: Warm) -> None:
        self.folder, self.data, self.ready = folder, data, ready
        self.events_path = folder / "events.jsonl"

    @contextmanager
    def ranks(self, *flags: str) -> Iterator[list[Program]]:
        port = free_port()
        command = [str(FOLDER / "train.py"), "--data", str(self.data), "--timeout-s", "30"]
        command += ["--checkpoints", str(self.folder), "--steps", str(STEPS), "--batch-size", "2", *flags]
        shared = {
            **os.environ,
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": "lo",
            "HOLDFAST_EVENTS": str(self.events_path),
            "SLURM_JOB_ID": "1",
        }
        with ExitStack() as stack:
            yield [
                stack.enter_context(self.ready.program(*command, environment=shared | {"RANK": str(rank)}, errors=True))
                for rank in range(2)
            ]

    def finish(self, *flags: str) -> tuple[list[int], str]:
        with self.ranks(*flags) as processes:
            outputs = [process.communicate() for process in processes]
            return [process.wait() for process in processes], "".join(outputs)

    def events(self, kind: str = "") -> list[Event]:
        parsed = parse_events(self.events_path.read_text().splitlines()) if self.events_path.exists() else None
        return [] if parsed is None else [event for event in parsed.events if kind in ("", event.kind)]

    def wait_for_step(self, step: int) -> None:
        eventually(lambda: any(event.detail["step"] == step for event in self.events(kinds.JOB_PROGRESS)), "progress")

    def losses(self) -> dict[int, float]:
        return {int(e.detail["step"]): float(e.detail["loss"]) for e in self.events(kinds.JOB_PROGRESS)}

    def digest(self) -> str:
        newest = json.loads((self.folder / "latest").read_text())[0]
        assert newest["step"] == STEPS
        return str(newest["sha256"])


@pytest.fixture(scope="module")
def ready() -> Iterator[Warm]:
    with warm("torch._dynamo", environment={**os.environ, "PYTHONPATH": str(REPOSITORY / "containers/common")}) as made:
        yield made


@pytest.fixture(scope="module")
def uninterrupted(ready: Warm, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(tmp_path_factory.mktemp("whole"), data, ready)
    codes, output = run.finish("--checkpoint-every", "4")
    assert codes == [0, 0], output
    return run


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_changes_nothing_in_the_end(
    ready: Warm, data: Path, uninterrupted: Run, tmp_path: Path, victim: int
) -> None:
    run = Run(tmp_path, data, ready)
    with run.ranks("--checkpoint-every", "4") as processes:
        run.wait_for_step(10)
        processes[victim].send_signal(signal.SIGKILL)
        output = processes[1 - victim].communicate()
        assert processes[1 - victim].returncode == 1, output
        assert f"error: rank {1 - victim} lost the other ranks at step" in output
    codes, output = run.finish("--checkpoint-every", "4")
    assert codes == [0, 0], output
    (resumed,) = run.events(kinds.JOB_RESUMED)
    assert 8 <= int(resumed.detail["step"]) < STEPS
    assert f"resumed from step {resumed.detail['step']}" in output
    assert run.losses() == uninterrupted.losses()
    assert run.digest() == uninterrupted.digest()


def test_sigterm_saves_the_last_whole_step(ready: Warm, data: Path, uninterrupted: Run, tmp_path: Path) -> None:
    run = Run(tmp_path, data, ready)
    with run.ranks("--checkpoint-every", "1000") as processes:
        run.wait_for_step(10)
        for process in processes:
            process.send_signal(signal.SIGTERM)
        outputs = [process.communicate() for process in processes]
        assert [process.returncode for process in processes] == [143, 143], outputs
    (saved,) = run.events(kinds.CHECKPOINT_SAVED)
    assert int(saved.detail["step"]) >= 10
    codes, output = run.finish("--checkpoint-every", "1000")
    assert codes == [0, 0], output
    assert run.losses() == uninterrupted.losses()


def test_every_rank_refuses_when_one_cannot_start(ready: Warm, data: Path, tmp_path: Path) -> None:
    (tmp_path / "step-4.pt").write_bytes(b"of an earlier run")
    codes, output = Run(tmp_path, data, ready).finish()
    assert codes == [2, 2]
    assert "error: rank 0: " in output
    assert "no file 'latest', so none can be trusted" in output
    assert "error: rank 1: another rank refused to start" in output
    assert "Traceback" not in output


def test_a_run_that_is_done_stays_done(ready: Warm, data: Path, uninterrupted: Run) -> None:
    before = uninterrupted.digest()
    codes, output = uninterrupted.finish("--checkpoint-every", "4")
    assert codes == [0, 0], output
    assert uninterrupted.digest() == before
