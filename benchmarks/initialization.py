"""
From "all processes are there" to "every rank has every address": our membership and store beside torch's TCPStore.

    python benchmarks/initialization.py [--ranks 16,64,128]

Each rank sets one address and reads those of all others, as gloo does when it connects a full mesh. Ours are launchers
of 8 ranks each on loopback, and the time has the agreement on the view in it; the ranks import no torch. TCPStore's
clients are forked from a process that has imported torch and are connected to the server before its time begins (where
names cannot be resolved, connecting takes seconds); nothing of torchrun's rendezvous is in it. All is wall time on the
same cores.
"""

import argparse
import math
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PER_NODE = 8

PROGRAM = """
import os, sys, time
from holdfast_runtime.control import ControlClient, Finished, Ready
client = ControlClient.from_environment()
ready = time.time()
client.send(Ready(committed_step=0, state="none", port=1))
view = client.receive_view(deadline_s=300)
if view.__class__.__name__ == "Stop":
    sys.exit(0)
client.keys.put(f"rank_{view.rank}", b"127.0.0.1:12345" * 8, epoch=view.epoch)
others = [f"rank_{rank}" for rank in range(view.world_size)]
for key in others:
    assert len(client.keys.get(key, epoch=view.epoch, deadline_s=300)) == 120
done = time.time()
with open(os.path.join(sys.argv[1], str(view.rank)), "w") as file:
    file.write(f"{ready} {done}")
client.send(Finished(committed_step=0))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("--ranks", default="16,64,256")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("ranks   ours          TCPStore      ratio   ours, per rank and log2(ranks)")
    for ranks in map(int, options.ranks.split(",")):
        rounds = [(ours(ranks), tcp_store(ranks)) for _ in range(options.rounds)]
        own = statistics.median(one for one, _ in rounds)
        other = statistics.median(two for _, two in rounds)
        ratio = statistics.median(two / one for one, two in rounds)
        per_rank_us = 1e6 * own / ranks / math.log2(ranks)
        print(f"{ranks:5}   {own:8.3f} s    {other:8.3f} s    {ratio:5.1f}   {per_rank_us:8.0f} us", flush=True)


def ours(ranks: int) -> float:
    """Seconds."""
    import socket

    nodes = max(1, ranks // PER_NODE)
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(nodes)]
    peers = ",".join(f"127.0.0.1:{server.getsockname()[1]}" for server in servers)
    for server in servers:
        server.close()
    path = os.pathsep.join(str(ROOT / "containers" / part) for part in ("training", "common"))
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
            variables = {**os.environ, "PYTHONPATH": path}
            quiet = subprocess.DEVNULL
            launchers.append(subprocess.Popen([*command, str(script), str(times)], env=variables, stderr=open("/tmp/hf/l%d.err" % node, "w")))
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


def tcp_store(ranks: int) -> float:
    """Seconds."""
    context = multiprocessing.get_context("fork")
    import torch.distributed  # noqa: F401 - the children are forked with it

    results = context.SimpleQueue()
    start = context.Event()
    there = context.Semaphore(0)
    port = context.Value("i", 0)
    about = (ranks, port, there, start, results)
    processes = [context.Process(target=client, args=(rank, *about)) for rank in range(ranks)]
    for process in processes:
        process.start()
    for _ in processes:
        there.acquire()
    began = time.time()
    start.set()
    ended = max(results.get() for _ in processes)
    for process in processes:
        process.join()
    return ended - began


def client(rank: int, ranks: int, port: Any, there: Any, start: Any, results: Any) -> None:
    """One rank of the TCPStore."""
    from datetime import timedelta

    from torch.distributed import TCPStore

    limit = timedelta(seconds=300)
    if rank == 0:
        store = TCPStore("127.0.0.1", 0, ranks, is_master=True, wait_for_workers=False, timeout=limit)
        port.value = store.port
    else:
        while not port.value:
            time.sleep(0.001)
        store = TCPStore("127.0.0.1", port.value, ranks, is_master=False, wait_for_workers=False, timeout=limit)
    there.release()
    start.wait()
    store.set(f"rank_{rank}", b"127.0.0.1:12345" * 8)
    for other in range(ranks):
        assert len(store.get(f"rank_{other}")) == 120
    results.put(time.time())
    # The server's process stays until all have read.
    store.add("done", 1)
    while rank == 0 and int(store.add("done", 0)) < ranks:
        time.sleep(0.01)
    os._exit(0)


if __name__ == "__main__":
    main()
