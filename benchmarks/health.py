"""
How many healthy nodes are repaired by Holdfast's verdicts.

    python benchmarks/health.py [--node-hours 1000] [--seed 18]

Healthy logs are generated (``benchmarks/healthy``, each pattern with its source) and replayed as files. Ends with 1
when a healthy node is repaired.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from healthy import PATTERNS, Line, node_log

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "containers" / name) for name in ("common", "health-agent")]

from holdfast_agent.replay import replayed  # noqa: E402
from holdfast_agent.verdicts import Policy  # noqa: E402

REPAIRS = ("reset-gpu", "reboot", "replace")
NODE_HOURS_OF_A_LOG = 25.0


def main() -> int:
    parser = argparse.ArgumentParser(description="False repairs on healthy logs.")
    parser.add_argument("--node-hours", type=float, default=1000.0, help="of healthy logs; default: 1000")
    parser.add_argument("--seed", type=int, default=18)
    given = parser.parse_args()
    logs = [
        node_log(seed=given.seed * 1_000_003 + number, hours=NODE_HOURS_OF_A_LOG)
        for number in range(max(1, round(given.node_hours / NODE_HOURS_OF_A_LOG)))
    ]
    repairs = false_repairs(logs)
    hours, lines = len(logs) * NODE_HOURS_OF_A_LOG, sum(len(log) for log in logs)
    print(f"{hours:,.0f} node-hours, {lines:,} lines, {len(PATTERNS)} patterns, seed {given.seed}")
    causes = ", ".join(f"{cause} {count}" for cause, count in repairs.most_common())
    print(f"{repairs.total()} false repairs{f', because of {causes}' if causes else ''}")
    return 1 if repairs else 0


def false_repairs(logs: list[list[Line]]) -> Counter[str]:
    """Incidents that require a repair at any time, by the pattern of the line before."""
    found: Counter[str] = Counter()
    policy = Policy.standard()
    with tempfile.TemporaryDirectory() as folder:
        for number, log in enumerate(logs):
            path = Path(folder) / f"node-{number}"
            path.write_text("".join(f"{line}\n" for line in log))
            seen: set[str] = set()
            for word in replayed(path, policy=policy):
                if word.verdict.remedy.value in REPAIRS and word.verdict.incident not in seen:
                    seen.add(word.verdict.incident)
                    found[log[word.line - 1].pattern or "boot"] += 1
    return found


if __name__ == "__main__":
    sys.exit(main())
