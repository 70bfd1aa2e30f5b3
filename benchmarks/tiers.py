"""
What the tiers of adoption without ``Run`` give, alone; ``recovery.py`` and ``sharded.py`` measure the others.

    python benchmarks/tiers.py launcher     # an unchanged script under holdfast-run, beside torchrun
    python benchmarks/tiers.py data         # mapped data, and nothing else of ours: to the batch where training was

For the launcher: kill to the next step of all ranks, and the steps done again. Four ranks on this machine, gloo, one
killed by SIGKILL in each trial; a checkpoint every ten steps. Both sides run in turns in one call, so that the ratio is
of one machine under one load, which is printed; seconds alone are those of that load.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

ROOT = Path(__file__).parents[1]
PROGRAM = Path(__file__).with_name("tiers_program.py")
PATHS = os.pathsep.join(str(ROOT / "containers" / part) for part in ("training", "common"))
RANKS, VICTIM, SAMPLES = 4, 1, 200_000
LIMIT_S = 300.0
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS), "--max-restarts", "9"]
HOLDFAST = ["-m", "holdfast_runtime.launcher", "--nproc-per-node", str(RANKS), "--spares", "1", "--preload", "torch"]
TIERS = ("launcher", "data")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tier", nargs="*", choices=TIERS, default=TIERS, help="Default: all, one after the other")
    parser.add_argument("--trials", type=int, default=3, help="kills on each side. Default: 3")
    args = parser.parse_args()
    for tier in args.tier:
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        if tier == "data":
            data()
        else:
            beside_torchrun(trials=args.trials)
    return 0


def beside_torchrun(*, trials: int) -> None:
    pairs = [(killed(TORCHRUN), killed(HOLDFAST)) for _ in range(trials)]
    names = ("torchrun", "holdfast-run")
    medians = [statistics.median(pair[side][0] for pair in pairs) for side in (0, 1)]
    for name, median, side in zip(names, medians, (0, 1), strict=True):
        print(f"{name:<28} {median:6.2f} s, steps done again: {', '.join(str(pair[side][1]) for pair in pairs)}")
    print(f"ratio {medians[1] / medians[0]:.2f}")


def killed(launcher: list[str]) -> tuple[float, int]:
    """Seconds from a kill to the next step of all ranks, and repeated steps."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = {"PYTHONPATH": PATHS, "HOLDFAST_TOKEN": "of a benchmark", "OMP_NUM_THREADS": "1"}
        # Else ranks that torchrun starts again find the addresses of dead ones (pytorch#135712).
        own["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
        with (folder / "log").open("wb") as log:
            job = subprocess.Popen(
                [sys.executable, *launcher, str(PROGRAM), name],
                env={**os.environ, **own},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            until(job, folder, lambda: newest(folder) >= 25)
            os.kill(lines(folder, VICTIM)[-1][0], signal.SIGKILL)
            at_s, before = time.time(), max(line[1] for rank in range(RANKS) for line in lines(folder, rank))
            until(job, folder, lambda: newest(folder) > before)
            end_s = max(min(line[2] for line in lines(folder, rank) if line[1] == before + 1) for rank in range(RANKS))
            again = len({line[1] for line in lines(folder, 0) if line[2] > at_s and line[1] <= before})
            return end_s - at_s, max(again - 1, 0)  # the step that was running is none
        finally:
            job.send_signal(signal.SIGTERM)
            try:
                job.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()


def until(job: "subprocess.Popen[bytes]", folder: Path, done: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_S
    while not done():
        if job.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"the job is not where it should be:\n{(folder / 'log').read_text()[-2000:]}")
        time.sleep(0.02)


def newest(folder: Path) -> int:
    done = [[line[1] for line in lines(folder, rank)] for rank in range(RANKS)]
    return min(max(steps, default=-1) for steps in done)


def lines(folder: Path, rank: int) -> list[tuple[int, int, float]]:
    path = folder / f"rank{rank}.log"
    text = path.read_text() if path.exists() else ""
    found = [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]
    return [(int(process), int(step), float(at)) for process, step, at in found]


def data() -> None:
    """Batches 10, 1,000 and 10,000 of a loader that has to pass all before it, and of mapped tokens."""
    sys.path.insert(0, str(ROOT / "containers" / "training"))
    from holdfast_runtime.data import Dataset, Source

    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "text.tokens"
        build = [sys.executable, "-m", "holdfast_runtime.data", "build", str(ROOT / "holdfast"), "--pattern", "*.py"]
        subprocess.run([*build, "--quiet", "-o", str(file)], check=True, env={**os.environ, "PYTHONPATH": PATHS})
        mapped = Dataset(sources=[Source("text", [str(file)])], context=64, batch_size=16, world_size=1, seed=1)
        dataset = TensorDataset(torch.arange(SAMPLES))
        print("batch      loader      mapped    ratio")
        for number in (10, 1_000, 10_000):
            loader = DataLoader(dataset, 16, sampler=RandomSampler(dataset, generator=torch.Generator().manual_seed(1)))
            begun = time.perf_counter()
            next(islice(iter(loader), number, None))
            passed, begun = time.perf_counter() - begun, time.perf_counter()
            mapped.batch(number, 0).torch()
            asked = time.perf_counter() - begun
            print(f"{number:<8,} {passed * 1e3:8.1f} ms {asked * 1e3:8.2f} ms {asked / passed:8.4f}")


if __name__ == "__main__":
    raise SystemExit(main())
