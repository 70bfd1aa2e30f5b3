"""
What elasticity is worth by the policy that decides on clusters, run from failure to failure.

Each run asks ``holdfast_common.shares`` what size the job should have, with the stages of a recovery of the planner.
"""

import heapq
import math
import random
import statistics
from dataclasses import dataclass

from holdfast.planner import Checkpoints, Failures, Scenario, Strategy
from holdfast_common import Elastic, shares

INSTANCES, RATE, HOURS = 256, 0.0005, 30 * 24.0
GROWS_S = 2.5
"""Without a step when the job grows: twice a change of 0.3 s (benchmarks/elastic.py), and two seconds over."""


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
