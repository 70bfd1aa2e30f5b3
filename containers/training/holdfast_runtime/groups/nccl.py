"""
NCCL below torch's process groups: environment of its watchdog, communicators made before the first step, aborts.

Read against torch 2.13 (``ProcessGroupNCCL.cpp``) and NCCL 2.29; not run on a GPU.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from holdfast_runtime.groups.private import UnsupportedError, c10d

MIXED = "cpu:gloo,cuda:nccl"
"""Of a sharded job: ranks agree on the host."""
WATCHDOG = {
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0",
    "TORCH_NCCL_BLOCKING_WAIT": "0",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    "TORCH_NCCL_PROPAGATE_ERROR": "0",
    "TORCH_NCCL_RETHROW_CUDA_ERRORS": "0",
    "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "0",
}
"""
With torch's defaults the watchdog of a survivor throws when a peer is lost, and the process ends with its state.
Torch's ``_abort_process_group`` requires the first of them too.
"""
DEFAULTS = {"NCCL_NVLS_ENABLE": "0"}
"""An abort with NVLink SHARP was not tried."""
ABORT_S = 10.0
"""Longest abort; shorter than the deadline ``leave``, after which the launcher ends the process."""
CANNOT_LEAVE = 75
"""Exit code of a process whose communicators cannot be aborted (EX_TEMPFAIL)."""
LOOK_S = 0.01
_LOG = logging.getLogger(__name__)


def set_environment(environment: MutableMapping[str, str] = os.environ) -> None:
    """
    Set what recoveries need of torch's watchdog, before a group is made.

    Raises:
        UnsupportedError: the job has set another value.
    """
    for name, value in WATCHDOG.items():
        for known in (name, name.removeprefix("TORCH_")):  # torch reads the old name too
            if environment.get(known, value) != value:
                raise UnsupportedError(
                    f"got {known}={environment[known]}; allowed: {value}, because torch's watchdog would end the "
                    f"survivors of a lost rank; remove {known} from the job's environment"
                )
    environment.update(WATCHDOG)
    for name, value in DEFAULTS.items():
        environment.setdefault(name, value)


def backends(groups: Sequence[dist.ProcessGroup]) -> list[Any]:
    """NCCL's part of each group, the newest group first; a group of gloo has none."""
    kind: Any = getattr(c10d, "ProcessGroupNCCL", None)
    found: dict[int, Any] = {}
    for group in reversed(groups) if kind is not None else ():
        for device in group._device_types:
            backend: Any = group._get_backend(device)
            backend = getattr(backend, "wrapped_pg", backend)
            if isinstance(backend, kind):
                found[id(backend)] = backend
    return [*found.values()]


def connect(found: Sequence[Any], *, leaving: Callable[[], bool], deadline_s: float) -> None:
    """
    Make the communicators, in a thread that is left behind when it is time to leave: NCCL waits for its peers without
    a limit, and torch knows a communicator only when it is whole.

    Args:
        found: Of ``backends``; all ranks make theirs in the same order.

    Raises:
        ConnectionError: it was time to leave, or the deadline is over.
        RuntimeError: NCCL's own.
    """
    if not found:
        return
    device = torch.device("cuda", torch.cuda.current_device())
    errors: list[BaseException] = []
    ended = threading.Event()

    def make() -> None:
        try:
            for backend in reversed(found):
                if leaving():
                    return
                backend.eager_connect_single_device(device)
        except BaseException as error:  # noqa: BLE001 - raised below, where it is waited for
            errors.append(error)
        finally:
            ended.set()

    threading.Thread(target=make, name="holdfast-nccl", daemon=True).start()
    end = time.monotonic() + deadline_s
    while not ended.wait(LOOK_S):
        if leaving():
            raise ConnectionError("it was time to leave while NCCL communicators were made")
        if time.monotonic() > end:
            raise ConnectionError(f"NCCL communicators were not made within {deadline_s:g} s")
    if errors:
        raise errors[0]
    if leaving():
        raise ConnectionError("it was time to leave while NCCL communicators were made")


class Aborts:
    """
    Aborts of all communicators at once: one may wait for a kernel of another (pytorch issue 119797).

    Args:
        stuck: Called where one of them does not end within ``limit_s``. Default: the process ends with
            ``CANNOT_LEAVE``, so that another takes its rank.
    """

    def __init__(self, *, limit_s: float = ABORT_S, stuck: Callable[[], object] | None = None) -> None:
        self._limit_s = limit_s
        self._stuck = stuck or _end_process
        self._begun: list[Any] = []
        self._watches: list[threading.Thread] = []
        self._lock = threading.Lock()

    def begin(self, found: Sequence[Any]) -> None:
        """Abort those that are new here, from any thread. Returns at once."""
        with self._lock:
            new = [backend for backend in found if not any(backend is known for known in self._begun)]
            if not new:
                return
            self._begun += new
            watch = threading.Thread(target=self._abort, args=(new,), name="holdfast-aborts", daemon=True)
            self._watches.append(watch)
            watch.start()

    def join(self) -> None:
        for watch in self._watches:
            watch.join()

    def _abort(self, found: Sequence[Any]) -> None:
        threads = [threading.Thread(target=_abort, args=(each,), name="holdfast-abort", daemon=True) for each in found]
        for thread in threads:
            thread.start()
        end = time.monotonic() + self._limit_s
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            self._stuck()


def _abort(backend: Any) -> None:
    try:
        backend.abort()
    except Exception:  # noqa: BLE001 - the others have to be aborted all the same
        _LOG.exception("a communicator could not be aborted")


def _end_process() -> None:
    _LOG.error("communicators are not aborted after %g s: this process ends, another takes its rank", ABORT_S)
    os._exit(CANNOT_LEAVE)
