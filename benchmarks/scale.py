"""
What a lost node costs each launcher, and how long the others take to agree, from 16 to 4,096 launchers.

    python benchmarks/scale.py [--launchers 16,64,256,1024,4096]

The state machines are those of ``holdfast_runtime``, in virtual time (``scale_program.py`` says what is assumed). All
launchers have a view; then the process of one is killed, or those of 5 % at once, and it counts until the last of the
others has the view without them. Messages are packets that a launcher sends, without signs of life, which cost the same
at any size. The page docs/concepts/scale.md has the table.
"""

import argparse
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scale_program import Simulated, World

LIMIT_S = 120.0
HEAD = (
    "| launchers | connections of each | killed | messages of each, mean | most | KB of each, mean | most "
    "| agreed after |\n"
    "|--:|--:|--:|--:|--:|--:|--:|--:|"
)


@dataclass(frozen=True, kw_only=True)
class Row:
    launchers: int
    connections: float
    killed: int
    messages: float
    most_messages: int
    kilobytes: float
    most_kilobytes: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"| {self.launchers:,} | {self.connections:.0f} | {self.killed:,} | {self.messages:.0f} "
            f"| {self.most_messages:,} | {self.kilobytes:,.0f} | {self.most_kilobytes:,.0f} | {self.seconds:.2f} s |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("--launchers", default="16,64,256,1024,4096")
    options = parser.parse_args()
    print(HEAD)
    for size in map(int, options.launchers.split(",")):
        for killed in sorted({1, round(0.05 * size)}):
            print(measured(size, killed=killed), flush=True)


def measured(size: int, *, killed: int) -> Row:
    world = World(size)
    victims = frozenset(random.Random(size).sample(range(size), killed))
    left = [launcher for launcher in world.launchers if launcher.alive and launcher.overlay.me not in victims]
    expected = tuple(-1 if node in victims else 0 for node in range(size))
    world.kill(victims)
    world.run(LIMIT_S, done=lambda: world.events % 64 == 0 and world.installs >= len(left) and all_have(expected, left))
    if not all_have(expected, left):
        raise SystemExit(f"{size} launchers of which {killed} are killed have no view without them after {LIMIT_S:g} s")
    counted = [each.counted for each in left]
    return Row(
        launchers=size,
        connections=world.links,
        killed=killed,
        messages=statistics.mean(each.packets for each in counted),
        most_messages=max(each.packets for each in counted),
        kilobytes=statistics.mean(each.bytes for each in counted) / 1000,
        most_kilobytes=max(each.bytes for each in counted) / 1000,
        seconds=max(each.installed_s for each in left),
    )


def all_have(nodes: tuple[int, ...], launchers: Sequence[Simulated]) -> bool:
    return all(each.node.committed.nodes == nodes for each in launchers)


if __name__ == "__main__":
    main()
