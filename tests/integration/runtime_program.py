"""
The training program of the recovery tests: small, deterministic, and it writes down every committed step.

Arguments: folder for the results, updates to make, seconds of sleep per step. Each rank appends a line per update with
the step, the mean loss and a digest, so that two runs can be compared bit for bit. The digest is of the parameters, the
buffers, Adam's moments and the samples that the updates were made of.
"""

import json
import sys
import time
from pathlib import Path

import torch
from torch import nn

import holdfast_runtime as holdfast
from holdfast_runtime.inprocess import digest_of


class Seen:
    """What the script adds to the state: the samples that committed updates were made of."""

    def __init__(self) -> None:
        self.samples: list[int] = []

    def state_dict(self) -> dict[str, list[int]]:
        return {"samples": list(self.samples)}

    def load_state_dict(self, state: dict[str, list[int]]) -> None:
        self.samples = list(state["samples"])


def main() -> None:
    out, total, pause_s = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(16, 64), nn.Dropout(0.1), nn.ReLU(), nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Linear(64, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
    seen = Seen()
    run = holdfast.Run(model, optimizer, scheduler=scheduler, state={"seen": seen}, digest_every=2, bucket_bytes=6000)
    for step in run.steps(total):
        with step:
            generator = torch.Generator().manual_seed(100 * step.number + run.rank)
            batch = torch.randn(8, 16, generator=generator)
            seen.samples.extend(100 * step.number + rank for rank in range(run.world_size))
            time.sleep(pause_s)
            loss = (model(batch) - batch.sum(1, keepdim=True)).square().mean()
            loss.backward()
            step.update(loss)
            moments = [value for state in optimizer.state.values() for value in state.values()]
            samples = torch.tensor(seen.samples)
            digest = digest_of([*model.parameters(), *model.buffers(), *moments, samples])
            line = {"step": step.number, "loss": step.loss.hex(), "digest": digest}
            line |= {"generation": run.generation, "time_s": time.time(), "samples": len(set(seen.samples))}
            with (out / f"rank{run.rank}.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")
    (out / f"done{run.rank}").write_text(str(sorted(seen.samples)))


if __name__ == "__main__":
    main()
