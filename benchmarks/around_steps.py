"""
CPU time of noting, at the beginning of a step, what a loop may change: apart from copies, and per MB of copies.

Of a model of 300 modules. Steps of 50 ms are what the share is of.

    python benchmarks/around_steps.py
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from holdfast_runtime.inprocess import TrainingState

BLOCKS = 75
STEP_S = 0.050
ROUNDS = 200
MB = 32


class Average:
    def __init__(self, size: int) -> None:
        self.value = torch.ones(size)

    def state_dict(self) -> dict[str, Tensor]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.value.copy_(state["value"])


def cpu_s(work: Callable[[], object]) -> float:
    work()
    found = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return statistics.median(found)


def noting(*, buffer_mb: int = 0, state_mb: int = 0) -> float:
    torch.set_num_threads(1)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Dropout(0.1)) for _ in range(BLOCKS)))
    if buffer_mb:
        model.register_buffer("large", torch.zeros(buffer_mb << 18))
    added = {"average": Average(state_mb << 18)} if state_mb else {}
    optimizer = torch.optim.AdamW(model.parameters())
    state = TrainingState(model, optimizer, scheduler=None, added=added)
    state.reach_boundary()

    def begin() -> None:
        state.begin(0)
        state.committed()

    return cpu_s(begin)


def main() -> None:
    bare = noting()
    print(f"{'noting 300 modules':28} {bare * 1e3:8.3f} ms  {bare / STEP_S:6.1%} of a step of {STEP_S * 1e3:.0f} ms")
    for name, more in (("buffers", {"buffer_mb": MB}), ("state=", {"state_mb": MB})):
        print(f"{'copies of ' + name:28} {(noting(**more) - bare) / MB * 1e3:8.3f} ms per MB")


if __name__ == "__main__":
    main()
