"""
What snapshots in a buddy's memory cost: CPU time per step of a fully sharded job with them and without, in one run.

    python benchmarks/snapshots.py                          # 4 ranks on 2 "nodes", a snapshot every 20 steps
    python benchmarks/snapshots.py --ranks 2 --every 50 --rounds 8

A transformer of 11.4 million parameters with Adam, sharded with fully_shard over gloo: 137 MB of state in all. Each
round trains ``every`` steps without and ``every`` steps with one snapshot, in alternating order. CPU time is of all
threads of all ranks: it has the copy, the checksums, and both ends of the transfer. Other load on the machine moves a
step's CPU time by more than a snapshot costs, so the cost is also measured alone, between two steps, and the overhead
is that cost over ``every`` steps. Then every rank's shard is fetched back from its buddy and compared. Exit status 1
when the overhead is above the limit, or a shard differs.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import FileStore  # type: ignore[attr-defined]
from torch.distributed.fsdp import fully_shard
from torch.multiprocessing.spawn import spawn

from holdfast_runtime.snapshots import Place, Shard, Snapshots, agree_by

LIMIT_PERCENT = 3.0
WIDTH, LAYERS, HEADS, VOCABULARY, CONTEXT, BATCH = 384, 6, 6, 1024, 32, 2
MEGABYTE = 1e6


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, values: Tensor) -> Tensor:
        normal = self.norm_1(values)
        values = values + self.attention(normal, normal, normal, need_weights=False)[0]
        result: Tensor = values + self.down(nn.functional.gelu(self.up(self.norm_2(values))))
        return result


def build() -> nn.Module:
    """The model, sharded over the default group."""
    torch.manual_seed(1234)
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, WIDTH), *(Layer() for _ in range(LAYERS)), nn.Linear(WIDTH, VOCABULARY)
    )
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    return model


class Average:
    def __init__(self, shard: Shard) -> None:
        self.values = {name: tensor.clone() for name, tensor in shard.weights().items()}

    def state_dict(self) -> dict[str, torch.Tensor]:
        return self.values

    def load_state_dict(self, state: dict[str, torch.Tensor], /) -> None:
        self.values = state


class Trainer:
    def __init__(self, rank: int, options: argparse.Namespace) -> None:
        self.rank, self.every = rank, options.every
        self.model = build()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)
        self.shard = Shard(self.model, self.optimizer)
        self.snapshots = Snapshots(host="127.0.0.1")
        self.step = 0
        self.train(2)
        ports: list[Any] = [None] * options.ranks
        dist.all_gather_object(ports, self.snapshots.port)
        self.places = [Place(2 * number // options.ranks, "127.0.0.1", port) for number, port in enumerate(ports)]
        self.join()

    def join(self, generation: int = 1) -> None:
        self.snapshots.join(
            self.shard,
            rank=self.rank,
            places=self.places,
            generation=generation,
            resume_step=self.step,
            agree=agree_by(),
        )

    def train(self, steps: int) -> None:
        for _ in range(steps):
            generator = torch.Generator().manual_seed(1_000_003 * self.step + self.rank)
            tokens = torch.randint(0, VOCABULARY, (BATCH, CONTEXT + 1), generator=generator)
            logits = self.model(tokens[:, :-1])
            nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()  # type: ignore[no-untyped-call]
            self.snapshots.before_update()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.step += 1

    def measure(self, *, snapshot: bool) -> tuple[float, float]:
        """CPU ms per step of this rank, and ms of the training thread in ``take``."""
        dist.barrier()
        started = time.process_time()
        critical = time.perf_counter()
        if snapshot and not self.snapshots.take(self.step):
            raise RuntimeError("the snapshot before was not finished")
        critical = time.perf_counter() - critical
        self.train(self.every)
        dist.barrier()
        return (time.process_time() - started) * 1e3 / self.every, critical * 1e3

    def alone(self) -> float:
        """CPU ms of one snapshot while nothing is trained: copy, checksums, sending, and keeping the ward's."""
        dist.barrier()
        started = time.process_time()
        self.snapshots.take(self.step)
        self.snapshots.wait()
        dist.barrier()
        return (time.process_time() - started) * 1e3

    def with_average(self) -> float:
        """As ``alone``, with an average of the parameters in the state."""
        self.snapshots.leave()
        dist.barrier()
        self.shard = Shard(self.model, self.optimizer, {"average": Average(self.shard)})
        self.join(2)
        return self.several_alone()

    def several_alone(self) -> float:
        """The median of ``alone``, each of another step: a snapshot that exists already is not copied again."""
        found = []
        for _ in range(8):
            self.train(1)
            found.append(self.alone())
        return statistics.median(found[1:])  # the first takes memory

    def fetch_back(self) -> tuple[float, bool]:
        parts = self.shard.tensors()
        before = {name: tensor.clone() for name, tensor in parts.items()}
        self.alone()
        self.snapshots.leave()
        dist.barrier()
        self.join(3)
        keeper = (self.rank + len(self.places) // 2) % len(self.places)
        with torch.no_grad():
            for tensor in parts.values():
                tensor.zero_()
        self.snapshots._keeper.forget_others([rank for rank in range(len(self.places)) if rank != self.rank])
        started = time.perf_counter()
        source = self.snapshots.restore(self.step, [keeper])
        duration = (time.perf_counter() - started) * 1e3
        same = all(torch.equal(tensor, before[name]) for name, tensor in self.shard.tensors().items())
        return duration, same and source == "buddy"


def work(rank: int, options: argparse.Namespace, folder: str) -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")  # in-place changes of outputs; there are none
    store = FileStore(f"{folder}/rendezvous", options.ranks)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=options.ranks)
    trainer = Trainer(rank, options)
    trainer.measure(snapshot=True)
    rounds = []
    for number in range(options.rounds):
        order = (False, True) if number % 2 else (True, False)
        found = {snapshot: trainer.measure(snapshot=snapshot) for snapshot in order}
        rounds.append({"without": found[False][0], "with": found[True][0], "critical": found[True][1]})
    problem = trainer.snapshots.wait()
    alone = trainer.several_alone()
    average = trainer.with_average()
    duration, same = trainer.fetch_back()
    size = sum(tensor.numel() * tensor.element_size() for tensor in trainer.shard.tensors().values())
    figures = {"rounds": rounds, "size": size, "alone": alone, "average": average}
    figures |= {"fetch_ms": duration, "same": same, "problem": problem}
    Path(folder, f"{rank}.json").write_text(json.dumps(figures))
    dist.barrier()
    trainer.snapshots.close()
    dist.destroy_process_group()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4, help="an even number (default: 4)")
    parser.add_argument("--every", type=int, default=20, help="steps from one snapshot to the next (default: 20)")
    parser.add_argument("--rounds", type=int, default=6, help="pairs of measurements (default: 6)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spawn(work, args=(options, folder), nprocs=options.ranks)  # type: ignore[no-untyped-call]
        ranks = [json.loads(Path(folder, f"{rank}.json").read_text()) for rank in range(options.ranks)]
    sums = {
        name: [sum(rank["rounds"][number][name] for rank in ranks) for number in range(options.rounds)]
        for name in ("without", "with")
    }
    differences = [100 * (some / none - 1) for some, none in zip(sums["with"], sums["without"], strict=True)]
    without, with_ = (statistics.median(sums[name]) for name in ("without", "with"))
    alone = sum(rank["alone"] for rank in ranks)
    overhead = 100 * alone / options.every / without
    critical = statistics.median(item["critical"] for rank in ranks for item in rank["rounds"])
    fetch = max(rank["fetch_ms"] for rank in ranks)
    print(
        f"{options.ranks} ranks, {ranks[0]['size'] / MEGABYTE:.1f} MB per shard, a snapshot every {options.every} steps"
    )
    print(f"CPU per step, all ranks   without {without:7.1f} ms   with {with_:7.1f} ms")
    spread = f"{min(differences):+.1f} to {max(differences):+.1f}"
    print(f"difference                {statistics.median(differences):+.2f} % ({spread})")
    print(f"CPU per snapshot, alone   {alone / options.ranks:7.1f} ms per rank")
    average = sum(rank["average"] for rank in ranks)
    print(f"with an average in state= {average / options.ranks:7.1f} ms per rank, {average / alone:.2f} of it")
    print(f"overhead                  {overhead:7.2f} % of the CPU per step (limit {LIMIT_PERCENT:.0f} %)")
    print(f"training thread in take   {critical:.2f} ms, the agreement of all ranks included")
    same = all(rank["same"] for rank in ranks)
    print(f"all shards fetched back   {fetch:.1f} ms, bytes {'equal' if same else 'DIFFER'}")
    for problem in {rank["problem"] for rank in ranks} - {""}:
        print(f"problem: {problem}")
    return 0 if same and overhead <= LIMIT_PERCENT and not any(rank["problem"] for rank in ranks) else 1


if __name__ == "__main__":
    sys.exit(main())
