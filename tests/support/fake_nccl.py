"""NCCL's part of a group, as far as the runtime calls it, without a GPU."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from holdfast_runtime.groups import private


class FakeNccl:
    """Records the threads that it is called in."""

    def __init__(
        self, name: str = "", *, connect: Callable[[], None] = lambda: None, abort: Callable[[], None] = lambda: None
    ) -> None:
        self.name = name
        self.connected_in: list[threading.Thread] = []
        self.aborted_in: list[threading.Thread] = []
        self._connect = connect
        self._abort = abort

    def eager_connect_single_device(self, device: torch.device) -> None:
        assert device.type == "cuda"
        self.connected_in.append(threading.current_thread())
        self._connect()

    def abort(self) -> None:
        self.aborted_in.append(threading.current_thread())
        self._abort()

    @classmethod
    def install(cls, monkeypatch: pytest.MonkeyPatch) -> None:
        """Torch has it from now on."""
        monkeypatch.setattr(private.c10d, "ProcessGroupNCCL", cls, raising=False)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)


def group_of(*backends: Any) -> Any:
    """A group with a backend for each of the devices cpu and cuda."""
    devices = [torch.device("cpu"), torch.device("cuda")][: len(backends)]
    by_device = dict(zip(devices, backends, strict=True))
    return SimpleNamespace(_device_types=devices, _get_backend=by_device.__getitem__)
