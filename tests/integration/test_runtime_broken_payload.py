"""A connection that breaks in the middle of a payload: gloo's own thread, and what stops it from taking a core."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroupGloo
from waiting import eventually

from holdfast_runtime.groups import Opening, poll_once, sockets_of

pytestmark = pytest.mark.e2e

NUMBERS = 64 << 20
"""256 MB: whoever sends them is stopped long before the last one."""
TRIES = 5
SENDER = f"""
import sys, torch, torch.distributed as dist
from datetime import timedelta
from torch._C._distributed_c10d import ProcessGroupGloo
store = dist.FileStore(sys.argv[1], 2)
group = ProcessGroupGloo(store, 1, 2, timedelta(seconds=60))
for _ in range({TRIES}):
    group.send([torch.ones({NUMBERS})], 0, 0).wait()
"""
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def sender(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    started = subprocess.Popen([sys.executable, "-c", SENDER, str(tmp_path / "store")])
    yield started
    started.kill()
    started.wait()


def polling_s() -> float:
    """CPU time of all polling threads of gloo so far."""
    total = 0
    for stat in Path("/proc/self/task").glob("*/stat"):
        name, _, rest = stat.read_text().rpartition(")")
        if name.endswith("(gloo_tcp_loop"):
            total += sum(map(int, rest.split()[11:13]))
    return total * TICK_S


def polled_for_s(seconds: float) -> float:
    before = polling_s()
    time.sleep(seconds)
    return polling_s() - before


def test_a_thread_that_polls_a_broken_connection_for_ever_is_told_of_it_once(
    tmp_path: Path, sender: "subprocess.Popen[bytes]"
) -> None:
    before = sockets_of()
    store = dist.FileStore(str(tmp_path / "store"), 2)
    group = ProcessGroupGloo(store, 0, 2, timedelta(seconds=60))
    sockets = Opening(before=before).sockets()
    payload = torch.empty(NUMBERS)
    for _ in range(TRIES):
        payload.zero_()
        work: Any = group.recv([payload], 1, 0)
        eventually(lambda: payload[0], "the beginning of the payload")
        sender.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        if not payload[-1]:
            break
        sender.send_signal(signal.SIGCONT)  # it was quicker
        work.wait()
    assert not payload[-1], "the payload came whole each time: nothing was broken"

    del work
    before_s = polling_s()
    sender.kill()
    sender.wait()
    eventually(lambda: polling_s() - before_s > 0.2, "a thread that takes a core, for which poll_once is there")
    poll_once(sockets)
    polled_for_s(0.05)
    assert polled_for_s(0.5) <= 2 * TICK_S
