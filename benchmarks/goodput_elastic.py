"""
What spares and elasticity are worth: 256 instances for 30 days at the published failure rate, beside the planner.

    python benchmarks/goodput_elastic.py

Each run goes from failure to failure and asks ``holdfast_common.shares``, which decides on clusters, what size the
job should have; the planner answers the same question with its own simulation. Both have the same stages of a recovery.
Agreement: the 95 % intervals of both means overlap.
"""

import heapq
import math
import random
import statistics
from dataclasses import dataclass

from holdfast.catalog.goodput import recovery_stages
from holdfast.planner import Checkpoints, Failures, Scenario, Strategy, simulate_wall, strategy_at
from holdfast_common import Elastic, shares

INSTANCES, RATE, HOURS, RUNS, SPARES = 256, 0.0005, 30 * 24.0, 300, range(5)
GROWS_S = 2.5
"""Without a step when the job grows: twice a change of 0.3 s (benchmarks/elastic.py), and two seconds over."""
STRATEGIES = {"checkpointless": "keeps its size", "elastic": "elastic"}


@dataclass
class Cluster:
    scenario: Scenario
    rng: random.Random
    sizes: tuple[int, ...]

    def run(self, hours: float) -> float:
        """Hours of undisturbed training on all instances that were done."""
        strategy, whole = self.scenario.strategy, self.scenario.instances
        there, nodes, now, done = whole + self.scenario.spares, whole, 0.0, 0.0
        back: list[float] = []
        resumes = 0.0
        while now < hours:
            failure = now + self.rng.expovariate(self.scenario.failures_per_hour)
            until = min(failure, hours)
            while now < until:  # from one instance that comes back to the next
                while back and back[0] <= now:
                    heapq.heappop(back)
                    there += 1
                if now >= resumes:
                    size = self.decided(there, nodes)
                    if not nodes and size:  # it waited for instances, and begins again now
                        resumes = now + strategy.back_h
                    elif size > nodes:
                        resumes = now + GROWS_S / 3600
                    nodes = size
                event = min([until, *back[:1], *([resumes] if resumes > now else [])])
                if now >= resumes:
                    done += (event - now) * nodes / whole
                now = event
            if failure < hours:
                there -= 1
                heapq.heappush(back, now + strategy.out_h)
                after_s = now + strategy.detect_h
                while back and back[0] <= after_s:
                    heapq.heappop(back)
                    there += 1
                nodes = self.decided(there, 0)
                resumes = after_s + strategy.back_h if nodes else after_s
        return done

    def decided(self, there: int, nodes: int) -> int:
        return shares(free=there - nodes, waiting=(), elastic=[Elastic("job", nodes, self.sizes)])["job"]


def simulated(scenario: Scenario, *, sizes: tuple[int, ...], runs: int, hours: float, seed: int) -> tuple[float, float]:
    """Goodput over the runs: mean, and half of its 95 % interval."""
    rng = random.Random(seed)
    found = [Cluster(scenario, rng, sizes).run(hours) / hours for _ in range(runs)]
    return statistics.mean(found), 1.959964 * statistics.stdev(found) / math.sqrt(runs)


def scenario_of(strategy: Strategy, *, spares: int) -> Scenario:
    """The job; what little checkpoints would cost is left out of both."""
    return Scenario(
        instances=INSTANCES,
        failures=Failures(per_instance_hour=RATE),
        strategy=strategy,
        checkpoints=Checkpoints(interval_s=3600.0, write_s=0.0),
        spares=spares,
    )


def main() -> None:
    print("| job | spares | goodput by the policy | by the planner | agree |\n|---|---|---|---|---|")
    for name, title in STRATEGIES.items():
        strategy = strategy_at(recovery_stages()[name], instances=INSTANCES)
        sizes = tuple(range(INSTANCES // 2 + 1, INSTANCES + 1)) if name == "elastic" else (INSTANCES,)
        for spares in SPARES:
            scenario = scenario_of(strategy, spares=spares)
            mean, half = simulated(scenario, sizes=sizes, runs=RUNS, hours=HOURS, seed=spares)
            planned = simulate_wall(scenario, wall_h=HOURS, runs=RUNS, seed=spares).goodput
            agree = mean - half <= planned.high and planned.low <= mean + half
            print(
                f"| {title} | {spares} | {mean:.3%} ± {half:.3%} | {planned.mean:.3%} ({planned.low:.3%} to "
                f"{planned.high:.3%}) | {'yes' if agree else 'no'} |"
            )


if __name__ == "__main__":
    main()
