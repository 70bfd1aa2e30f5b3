"""
How long the planner's simulation takes: 10,000 runs of 90 days of 1,024 instances; and beside a loop in plain Python.

    python benchmarks/plan.py

Seconds and memory are those of a process of its own, with the imports. The loop follows the same rules one failure
after the other, on a size that it can do, so the ratio is of the same work.
"""

import random
import resource
import statistics
import subprocess
import sys
import time

from holdfast.planner import Checkpoints, Failures, Scenario, Strategy, simulate_wall

RUNS, HOURS, INSTANCES = 10_000, 90 * 24, 1024
SMALL_RUNS, ROUNDS = 200, 5


def scenario(instances: int) -> Scenario:
    strategy = Strategy(
        name="checkpoints",
        title="checkpoints",
        detect_s=80.0,
        replace_s=981.0,
        resume_s=1440.0,
        redo="checkpoint",
        redo_s=0.0,
        waits_for_replacement=True,
    )
    return Scenario(
        instances=instances,
        failures=Failures(per_instance_hour=0.0005),
        strategy=strategy,
        checkpoints=Checkpoints(interval_s=1800.0, write_s=30.0),
        spares=4,
    )


def main() -> None:
    if sys.argv[1:] == ["--once"]:
        run = simulate_wall(scenario(INSTANCES), wall_h=HOURS, runs=RUNS, seed=0)
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{run.goodput.mean:.4f} {peak_mib:.0f}")
        return
    seconds, text = [], ""
    for _ in range(ROUNDS):
        began = time.perf_counter()
        done = subprocess.run([sys.executable, __file__, "--once"], capture_output=True, text=True, check=True)
        seconds.append(time.perf_counter() - began)
        text = done.stdout
    reached, peak = text.split()
    print(f"{RUNS:,} runs of {HOURS // 24} days of {INSTANCES:,} instances: goodput {float(reached):.2%}")
    print(f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f}), {peak} MiB at most")
    ratios = []
    for number in range(ROUNDS):
        began = time.process_time()
        loop(scenario(INSTANCES), runs=SMALL_RUNS, seed=number)
        plain = time.process_time() - began
        began = time.process_time()
        simulate_wall(scenario(INSTANCES), wall_h=HOURS, runs=SMALL_RUNS, seed=number)
        ratios.append(plain / (time.process_time() - began))
    spread = f"({min(ratios):.1f} to {max(ratios):.1f})"
    print(f"a plain loop takes {statistics.median(ratios):.1f} times as long for {SMALL_RUNS} runs {spread}")


def loop(job: Scenario, *, runs: int, seed: int) -> float:
    rng = random.Random(seed)
    useful = 0.0
    for _ in range(runs):
        now, returns = 0.0, [0.0] * job.spares
        down = 0.0
        while True:
            end = now + rng.expovariate(job.failures_per_hour)
            trained = max(0.0, min(end, HOURS) - now - down)
            useful += trained // job.checkpoints.period_h * job.checkpoints.interval_s / 3600
            if end >= HOURS:
                break
            returns.sort()
            first = returns.pop(0)
            down = max(job.strategy.detect_s / 3600, first - end) + job.strategy.resume_s / 3600
            returns.append(end + (job.strategy.detect_s + job.strategy.replace_s) / 3600)
            now = end
    return useful / runs / HOURS


if __name__ == "__main__":
    main()
