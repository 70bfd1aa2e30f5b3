"""One GPU per process: claims that end with their process, and a probe that does not wait for a driver."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import holdfast_runtime as holdfast
from holdfast_runtime.groups import UnsupportedError
from holdfast_runtime.inprocess import Claims, probe

GPU = "holdfast_runtime.inprocess.devices.gpu"
UUIDS = ["GPU-a", "GPU-b", "GPU-c"]


class Other:
    """Another process of the job, with a child of its own, as a loader's worker."""

    def __init__(self, path: Path, uuids: list[str]) -> None:
        reading, writing = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            os.setpgid(0, 0)
            os.write(writing, str(Claims(path).take(uuids)).encode())
            os.fork()
            signal.pause()
        os.close(writing)
        self.has = os.read(reading, 16).decode()
        os.close(reading)

    def kill(self) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._process, 0)


@pytest.fixture
def others() -> Iterator[list[Other]]:
    found: list[Other] = []
    yield found
    for other in found:
        other.end()


def test_a_successor_gets_the_gpu_of_the_process_that_was_lost_and_no_other(
    tmp_path: Path, others: list[Other]
) -> None:
    claims = Claims(tmp_path / "gpus")
    assert claims.take(UUIDS) == 0
    others.append(Other(claims.path, UUIDS))
    others.append(Other(claims.path, UUIDS))
    assert [other.has for other in others] == ["1", "2"]

    others[0].kill()
    others.append(Other(claims.path, UUIDS))

    assert others[2].has == "1", "the lost one's child still lives, and its GPU is free"


def test_a_process_without_a_free_gpu_gets_none(tmp_path: Path, others: list[Other]) -> None:
    claims = Claims(tmp_path / "gpus")
    assert claims.take(UUIDS[:1]) == 0

    others.append(Other(claims.path, UUIDS[:1]))

    assert others[0].has == "None"


def test_tasks_that_each_see_another_gpu_as_their_first_do_not_compete(tmp_path: Path, others: list[Other]) -> None:
    claims = Claims(tmp_path / "gpus")

    assert claims.take(["GPU-a"]) == 0
    others.append(Other(claims.path, ["GPU-b"]))

    assert others[0].has == "0"


def test_a_gpu_that_failed_its_probe_is_not_taken_again(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "gpus")

    claims.mark("GPU-a")

    assert (claims.take(UUIDS), claims.marked(UUIDS)) == (1, 1)


def test_a_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "other")

    with pytest.raises(OSError, match="symbolic links"):
        Claims(tmp_path / "link").take(UUIDS)


def test_a_gpu_that_computes_passes_its_probe() -> None:
    assert probe(lambda: None) == ""


def test_a_gpu_that_fails_is_named_by_its_error() -> None:
    def compute() -> None:
        raise RuntimeError("CUDA error: uncorrectable ECC error encountered\nCompile with TORCH_USE_CUDA_DSA")

    assert probe(compute) == "RuntimeError: CUDA error: uncorrectable ECC error encountered"


def test_a_driver_call_that_hangs_is_not_waited_for() -> None:
    end = threading.Event()
    try:
        assert probe(lambda: bool(end.wait(60.0)) and None, limit_s=0.05) == "no answer within 0.05 s"
    finally:
        end.set()


class Driver:
    """Three GPUs, of which some do not compute."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: Path, *, broken: tuple[int, ...] = ()) -> None:
        self.current = -1
        self.exits: list[int] = []
        monkeypatch.setattr(f"{GPU}._own", [])
        monkeypatch.setattr("tempfile.gettempdir", lambda: str(path))
        monkeypatch.setattr(f"{GPU}._compute", lambda index: self.compute(index, broken))
        monkeypatch.setattr(os, "_exit", self.exit)
        monkeypatch.setenv("LOCAL_RANK", "7")
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", path.name)
        for name, value in {
            "is_available": lambda: True,
            "device_count": lambda: 3,
            "get_device_properties": lambda index: SimpleNamespace(uuid=UUIDS[index]),
            "set_device": lambda index: setattr(self, "current", index),
        }.items():
            monkeypatch.setattr(torch.cuda, name, value)

    @staticmethod
    def compute(index: int, broken: tuple[int, ...]) -> None:
        if index in broken:
            raise RuntimeError("CUDA error: device-side failure")

    def exit(self, code: int) -> None:
        self.exits.append(code)
        raise SystemExit(code)


def test_the_device_is_the_current_one_and_that_of_local_rank(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    driver = Driver(monkeypatch, tmp_path)

    assert holdfast.device() == holdfast.device() == torch.device("cuda", 0)
    assert (driver.current, os.environ["LOCAL_RANK"]) == (0, "0")


def test_a_broken_gpu_ends_the_process_by_its_own_exit_code_and_the_next_one_takes_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    driver = Driver(monkeypatch, tmp_path, broken=(0,))

    with pytest.raises(SystemExit):
        holdfast.device()

    assert driver.exits == [76]
    assert "GPU 0 (GPU-a) does not work: RuntimeError: CUDA error: device-side failure" in caplog.text
    assert holdfast.device() == torch.device("cuda", 1)


def test_more_processes_than_gpus_are_refused_with_what_to_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Driver(monkeypatch, tmp_path)
    monkeypatch.setattr(Claims, "take", lambda *_: None)
    monkeypatch.delenv("HOLDFAST_CONTROL_FD", raising=False)

    with pytest.raises(UnsupportedError, match="got more processes on this node than its 3 GPUs; allowed: one per GPU"):
        holdfast.device()


def test_without_a_gpu_it_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{GPU}._own", [])

    assert holdfast.device() == torch.device("cpu")
