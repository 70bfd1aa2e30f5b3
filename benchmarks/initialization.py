"""
From "all processes are there" to "every rank has every address": our membership and store beside torch's TCPStore.

    python benchmarks/initialization.py [--ranks 16,64,256] [--rounds 5]

Each rank sets one address and reads those of all others, as gloo does when it connects a full mesh. Ours are launchers
of 8 ranks each on loopback; the ranks import no torch. The other path is that of torchrun: its agents, one for 8 ranks,
meet by the c10d rendezvous, then the ranks connect to a TCPStore, wait until all have, and exchange the same addresses;
they are forked from a process that has imported torch. Importing, starting and assigning ranks is in neither. TCPStore
looks up a name for each connection: that is kept from asking name servers where this program may mount (as root), since
a slow one adds seconds. All is wall time on the same cores, one after the other in each round.
"""

import argparse
import ctypes
import math
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import recovery

PER_NODE = 8
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000

PROGRAM = """
import os, sys, time
from holdfast_runtime.control import ControlClient, Finished, Ready
client = ControlClient.from_environment()
ready = time.time()
client.send(Ready(committed_step=0, state="none", port=1))
view = client.receive_view(deadline_s=300)
if view.__class__.__name__ == "Stop":
    sys.exit(0)
client.keys.put(f"rank_{view.rank}", b"127.0.0.1:12345" * 8, generation=view.generation)
others = [f"rank_{rank}" for rank in range(view.world_size)]
for key in others:
    assert len(client.keys.get(key, generation=view.generation, deadline_s=300)) == 120
done = time.time()
time.sleep(2.0)  # the end of the first ones must not cost the last ones their time
with open(os.path.join(sys.argv[1], str(view.rank)), "w") as file:
    file.write(f"{ready} {done}")
client.send(Finished(committed_step=0))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("--ranks", default="16,64,256")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("ranks      ours   c10d rendezvous + TCPStore   ratio (without rendezvous)   ours per rank and log2(ranks)")
    for ranks in map(int, options.ranks.split(",")):
        rounds = [(ours(ranks), rendezvous(nodes_of(ranks)), tcp_store(ranks)) for _ in range(options.rounds)]
        own, met, stored = (statistics.median(column) for column in zip(*rounds, strict=True))
        ratio = statistics.median((two + three) / one for one, two, three in rounds)
        alone = statistics.median(three / one for one, _, three in rounds)
        per_rank_us = 1e6 * own / ranks / math.log2(ranks)
        times = f"{ranks:5}   {own:5.3f} s     {met:8.3f} s + {stored:8.3f} s"
        print(f"{times}   {ratio:5.1f} ({alone:.1f}) {per_rank_us:24.0f} us", flush=True)


def nodes_of(ranks: int) -> int:
    return max(1, ranks // PER_NODE)


def ours(ranks: int) -> float:
    nodes = nodes_of(ranks)
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(nodes)]
    peers = ",".join(f"127.0.0.1:{server.getsockname()[1]}" for server in servers)
    for server in servers:
        server.close()
    with tempfile.TemporaryDirectory(prefix="holdfast-initialization-") as name:
        folder = Path(name)
        script, times = folder / "program.py", folder / "times"
        times.mkdir()
        script.write_text(PROGRAM)
        launchers = []
        for node in range(nodes):
            command = [
                sys.executable,
                "-m",
                "holdfast_runtime.launcher",
                "--preload",
                "holdfast_runtime.control",
                "--rdzv-id",
                name,
            ]
            command += ["--nproc-per-node", str(ranks // nodes), "--socket", str(folder / f"{node}.sock")]
            command += ["--deadlines", "beat=5,heartbeat=60,leave=70,ready=80,minority=90"]
            if nodes > 1:
                command += ["--peers", peers, "--node-rank", str(node)]
            variables = {**os.environ, "PYTHONPATH": recovery.PYTHONPATH}
            quiet = subprocess.DEVNULL
            launchers.append(subprocess.Popen([*command, str(script), str(times)], env=variables, stderr=quiet))
        try:
            for launcher in launchers:
                launcher.wait(timeout=300)
        finally:
            for launcher in launchers:
                launcher.kill()
                launcher.wait()
        found = [tuple(map(float, path.read_text().split())) for path in times.iterdir()]
    if len(found) != ranks:
        raise SystemExit(f"{len(found)} of {ranks} ranks have finished")
    return max(done for _, done in found) - max(ready for ready, _ in found)


class Crowd:
    def __init__(self, size: int) -> None:
        context = multiprocessing.get_context("fork")
        self.size = size
        self.start = context.Event()
        self.there = context.Semaphore(0)
        self.done = context.Barrier(size)
        self.port = context.Value("i", 0)
        self.ended = context.SimpleQueue()


def together(member: Callable[[int, Crowd], None], size: int) -> float:
    """Seconds until the last of the processes has done its part, from when all exist."""
    import torch.distributed.elastic.rendezvous.c10d_rendezvous_backend  # noqa: F401 - the children are forked with it

    context = multiprocessing.get_context("fork")
    result = context.SimpleQueue()
    process = context.Process(target=crowd, args=(member, size, result))
    process.start()
    seconds = float(result.get())
    process.join()
    return seconds


def crowd(member: Callable[[int, Crowd], None], size: int, result: Any) -> None:
    """In a process of its own, to isolate its mounts."""
    keep_names_local()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # a warning for each connection that has no name
    shared = Crowd(size)
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=member, args=(number, shared)) for number in range(size)]
    for process in processes:
        process.start()
    for _ in processes:
        shared.there.acquire()
    began = time.time()
    shared.start.set()
    result.put(max(shared.ended.get() for _ in processes) - began)
    for process in processes:
        process.join()


def keep_names_local() -> None:
    """Resolve names from files only; needs the right to mount."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None):
        return
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write("hosts: files\n")
    libc.mount(file.name.encode(), b"/etc/nsswitch.conf", None, MS_BIND, None)
    Path(file.name).unlink()


def rendezvous(nodes: int) -> float:
    return together(agent, nodes)


def agent(number: int, crowd: Crowd) -> None:
    from torch.distributed.elastic.rendezvous import RendezvousParameters
    from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

    if number == 0:
        with socket.create_server(("127.0.0.1", 0)) as free:
            crowd.port.value = free.getsockname()[1]
    crowd.there.release()
    crowd.start.wait()
    parameters = RendezvousParameters(
        backend="c10d",
        endpoint=f"127.0.0.1:{crowd.port.value}",
        run_id="benchmark",
        min_nodes=crowd.size,
        max_nodes=crowd.size,
        local_addr="127.0.0.1",
        is_host=number == 0,
    )
    handler = get_rendezvous_handler(parameters)
    assert handler.next_rendezvous().world_size == crowd.size
    end(crowd)


def tcp_store(ranks: int) -> float:
    """Seconds for the ranks to connect, to see all others, and to exchange addresses."""
    return together(rank_with_tcp_store, ranks)


def rank_with_tcp_store(rank: int, crowd: Crowd) -> None:
    from torch._C._distributed_c10d import TCPStore

    def connected(port: int) -> Any:
        limit = timedelta(seconds=300)
        return TCPStore("127.0.0.1", port, crowd.size, is_master=rank == 0, wait_for_workers=False, timeout=limit)

    if rank == 0:
        store = connected(0)
        crowd.port.value = store.port
    crowd.there.release()
    crowd.start.wait()
    if rank:
        store = connected(crowd.port.value)
    if store.add("joined", 1) == crowd.size:
        store.set("all", "1")
    store.get("all")
    store.set(f"rank_{rank}", b"127.0.0.1:12345" * 8)
    for other in range(crowd.size):
        assert len(store.get(f"rank_{other}")) == 120
    end(crowd)


def end(crowd: Crowd) -> NoReturn:
    """Exit without closing what others still use."""
    crowd.ended.put(time.time())
    crowd.done.wait()
    os._exit(0)


if __name__ == "__main__":
    main()
