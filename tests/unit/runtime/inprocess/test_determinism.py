"""Settings for the same bits: all at once, before the GPU is used, and none of the job's own is overwritten."""

import os
from collections.abc import Iterator

import pytest
import torch

import holdfast_runtime as holdfast
from holdfast_runtime.groups import UnsupportedError


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    backends = torch.backends
    before = (backends.cudnn.deterministic, backends.cudnn.benchmark)
    attention = (backends.cuda.mem_efficient_sdp_enabled(), backends.cuda.cudnn_sdp_enabled())
    yield
    torch.use_deterministic_algorithms(mode=False)
    backends.cudnn.deterministic, backends.cudnn.benchmark = before
    backends.cuda.enable_mem_efficient_sdp(attention[0])
    backends.cuda.enable_cudnn_sdp(attention[1])


def test_all_settings_are_made_at_once() -> None:
    environment: dict[str, str] = {}

    holdfast.deterministic(environment=environment)

    assert environment["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert (environment["NCCL_ALGO"], environment["NCCL_PROTO"], environment["NCCL_NVLS_ENABLE"]) == (
        "Ring",
        "Simple",
        "0",
    )
    assert environment["NCCL_MIN_NCHANNELS"] == environment["NCCL_MAX_NCHANNELS"]
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.backends.cudnn.deterministic
    assert not torch.backends.cudnn.benchmark
    assert not torch.backends.cuda.mem_efficient_sdp_enabled()


def test_an_order_of_sums_that_the_job_chooses_is_kept() -> None:
    environment = {"NCCL_ALGO": "Tree", "CUBLAS_WORKSPACE_CONFIG": ":16:8"}

    holdfast.deterministic(environment=environment)

    assert (environment["NCCL_ALGO"], environment["CUBLAS_WORKSPACE_CONFIG"]) == ("Tree", ":16:8")


def test_a_value_that_is_not_deterministic_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="got CUBLAS_WORKSPACE_CONFIG=:0:0; allowed: :4096:8, :16:8; remove it"):
        holdfast.deterministic(environment={"CUBLAS_WORKSPACE_CONFIG": ":0:0"})


def test_it_is_too_late_once_the_gpu_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)

    with pytest.raises(UnsupportedError, match="got no CUBLAS_WORKSPACE_CONFIG while the GPU is in use already"):
        holdfast.deterministic(environment={})
    holdfast.deterministic(environment={"CUBLAS_WORKSPACE_CONFIG": ":16:8", "TORCHINDUCTOR_DETERMINISTIC": "1"})


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUBLAS_WORKSPACE_CONFIG", "TORCHINDUCTOR_DETERMINISTIC"):
        monkeypatch.setenv(name, "1")
        monkeypatch.delenv(name)
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    for name in ("NCCL_PROTO", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_NVLS_ENABLE"):
        monkeypatch.setenv(name, "1")

    holdfast.deterministic()

    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
