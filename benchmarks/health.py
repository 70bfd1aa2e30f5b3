"""
How many healthy nodes are repaired, and how many faults are missed: Holdfast's verdicts beside three other policies.

    python benchmarks/health.py [--node-hours 1000] [--seed 18]

Healthy logs are generated (``benchmarks/healthy``, each pattern with its source) and replayed as files. The faults, and
harmless lines on which agents disagree, are the stories of tests/cases/health/disagreements.json: what is a fault
there is what their sources say, and where these differ, what our policy took. So only the first column compares on
neutral ground. Ends with 1 when Holdfast repairs a healthy node.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

from healthy import PATTERNS, PEERS, Line, Peer, node_log, repairs_by

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "containers" / name) for name in ("common", "health-agent")]

from holdfast_agent.replay import replayed  # noqa: E402
from holdfast_agent.verdicts import Policy  # noqa: E402

STORIES = ROOT / "tests/cases/health/disagreements.json"
REPAIRS = ("reset-gpu", "reboot", "replace")
NODE_HOURS_OF_A_LOG = 25.0
OURS = "Holdfast"


def main() -> int:
    parser = argparse.ArgumentParser(description="False repairs on healthy logs, by policy.")
    parser.add_argument("--node-hours", type=float, default=1000.0, help="of healthy logs; default: 1000")
    parser.add_argument("--seed", type=int, default=18)
    given = parser.parse_args()
    logs = [
        node_log(seed=given.seed * 1_000_003 + number, hours=NODE_HOURS_OF_A_LOG)
        for number in range(max(1, round(given.node_hours / NODE_HOURS_OF_A_LOG)))
    ]
    repairs = {OURS: false_repairs(logs), **{peer.name: false_repairs_of(peer, logs) for peer in PEERS}}
    # The peers' tables are about these; what they know of file systems and memory is not compared.
    stories = [one for one in json.loads(STORIES.read_text())["stories"] if "Xid" in str(one["lines"])]
    decided = {OURS: [repairs_story(story) for story in stories]}
    decided |= {peer.name: [bool(repairs_by(peer, story["lines"])) for story in stories] for peer in PEERS}
    expected = [requires_repair(story) for story in stories]

    hours, lines = len(logs) * NODE_HOURS_OF_A_LOG, sum(len(log) for log in logs)
    print(f"{hours:,.0f} node-hours, {lines:,} lines, {len(PATTERNS)} patterns, seed {given.seed}")
    print(f"{sum(expected)} stories with a fault, {len(expected) - sum(expected)} without; Xids and SXids only\n")
    print("| policy | false repairs of healthy nodes | faults missed | repairs without a fault | because of |")
    print("|---|---|---|---|---|")
    for name, found in repairs.items():
        missed = sum(want and not did for want, did in zip(expected, decided[name], strict=True))
        invented = sum(did and not want for want, did in zip(expected, decided[name], strict=True))
        causes = ", ".join(f"{cause} {count}" for cause, count in found.most_common())
        print(f"| {name} | {found.total()} | {missed} | {invented} | {causes or '-'} |")
    return 1 if repairs[OURS] else 0


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


def false_repairs_of(peer: Peer, logs: list[list[Line]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for log in logs:
        kernel = [line for line in log if line.program == "kernel"]
        asked = repairs_by(peer, [(line.hours * 3600, line.text) for line in kernel])
        by_place = {(line.hours * 3600, line.text): line.pattern for line in kernel}
        found.update(by_place[second, text] for second, _, text in asked)
    return found


def requires_repair(story: dict[str, list[dict[str, str]]]) -> bool:
    return any(one["remedy"] in REPAIRS for one in story["incidents"])


def repairs_story(story: dict[str, list[tuple[float, str]]]) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kmsg"
        records = [(boot_s, text.replace("\n", "\\x0a")) for boot_s, text in story["lines"]]
        path.write_text("".join(f"4,{n},{round(boot_s * 1e6)},-;{text}\n" for n, (boot_s, text) in enumerate(records)))
        last = {word.verdict.incident: word.verdict.remedy.value for word in replayed(path, policy=Policy.standard())}
    return any(remedy in REPAIRS for remedy in last.values())


if __name__ == "__main__":
    sys.exit(main())
