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

from holdfast_runtime.groups import Opening, poll_once, sockets_of

NUMBERS = 64 << 20
"""256 MB: whoever sends them is stopped long before the last one."""
SENDER = f"""
import sys, torch, torch.distributed as dist
from datetime import timedelta
from torch._C._distributed_c10d import ProcessGroupGloo
store = dist.FileStore(sys.argv[1], 2)
group = ProcessGroupGloo(store, 1, 2, timedelta(seconds=60))
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
    payload = torch.zeros(NUMBERS)
    work: Any = group.recv([payload], 1, 0)
    end = time.monotonic() + 30
    while not payload[0] and time.monotonic() < end:
        time.sleep(0.001)
    sender.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    assert payload[0] == 1
    assert payload[-1] == 0, "the payload has come whole: nothing was broken"

    del work
    sender.kill()
    sender.wait()
    assert polled_for_s(0.5) > 0.1, "gloo has another way by now: this can go"
    poll_once(sockets)
    polled_for_s(0.05)
    assert polled_for_s(0.5) <= 2 * TICK_S
