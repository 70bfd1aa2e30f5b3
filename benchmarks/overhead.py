"""
What a step costs more than under plain DistributedDataParallel, in CPU time of rank 0; and the same bits.

    python benchmarks/overhead.py [--steps 40] [--rounds 5]

The workload is that of ``recovery.py``. Both are run in turns; each pair is next to each other in time. The bits are
compared with a loop that adds up the same buckets with ``all_reduce`` and nothing else of ours.
"""

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import recovery

SKIPPED = 8
"""First steps of a run, which allocate."""
PLAIN = Path(__file__).with_name("overhead_program.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    milliseconds: dict[str, list[float]] = {"DDP": [], "Holdfast": []}
    bits: dict[str, set[str]] = {"buckets alone": set(), "Holdfast": set()}
    with tempfile.TemporaryDirectory(prefix="holdfast-overhead-") as name:
        for number in range(options.rounds):
            order = ["DDP", "Holdfast"] if number % 2 else ["Holdfast", "DDP"]
            for kind in order:
                folder = Path(name) / f"{kind}-{number}"
                run(folder, options.steps, kind)
                milliseconds[kind].append(cpu_ms(folder))
                if kind == "Holdfast":
                    bits[kind] |= recovery.digests(folder)
        folder = Path(name) / "buckets"
        run(folder, options.steps, "buckets")
        bits["buckets alone"] |= recovery.digests(folder)
    for kind, values in milliseconds.items():
        print(f"{kind:9} {statistics.median(values):7.2f} ms of CPU a step  ({min(values):.2f} to {max(values):.2f})")
    pairs = zip(milliseconds["Holdfast"], milliseconds["DDP"], strict=True)
    ratios = sorted(ours / plain for ours, plain in pairs)
    print(f"ratio     {statistics.median(ratios):.4f}  ({ratios[0]:.3f} to {ratios[-1]:.3f} over {len(ratios)} pairs)")
    print(f"same bits as the buckets alone: {'yes' if bits['Holdfast'] == bits['buckets alone'] else 'NO'}")


def run(folder: Path, steps: int, kind: str) -> None:
    if kind == "Holdfast":
        recovery.launch(folder, steps, [])
        return
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(recovery.WORLD)]
    command += ["--log-dir", str(folder)]  # else it leaves one behind in the folder for temporary files
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": recovery.PYTHONPATH}
    command += [str(PLAIN), str(folder), str(steps), kind]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{kind} failed:\n{done.stderr[-3000:]}")


def cpu_ms(folder: Path) -> float:
    rows = [line.split() for line in (folder / "steps").read_text().splitlines()]
    seconds = [float(row[5]) for row in rows if row[1] == "0"][SKIPPED:]
    return 1000 * statistics.mean(after - before for before, after in itertools.pairwise(seconds))


if __name__ == "__main__":
    main()
