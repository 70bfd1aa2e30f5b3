"""
What a lost node costs each launcher, and how long the others take to agree, from 16 to 4,096 launchers.

    python benchmarks/scale.py [--launchers 16,64,256,1024,4096] [--write docs/scale]

The state machines are those of ``holdfast_runtime``, in virtual time (``scale_program.py`` says what is assumed). All
launchers have a view; then the process of one is killed, or those of 5 % at once, and it counts until the last of the
others has the view without them. Messages are packets that a launcher sends, without signs of life, which cost the same
at any size. ``--write`` puts the table into the page and draws the plot beside it.
"""

import argparse
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scale_program import Simulated, World

LIMIT_S = 120.0
BEGIN, END = "<!-- table: python benchmarks/scale.py --write docs/scale -->", "<!-- end of the table -->"
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
    parser.add_argument("--write", type=Path, metavar="PAGE", help="without its ending")
    options = parser.parse_args()
    rows = []
    print(HEAD)
    for size in map(int, options.launchers.split(",")):
        for killed in sorted({1, round(0.05 * size)}):
            rows.append(measured(size, killed=killed))
            print(rows[-1], flush=True)
    if options.write:
        page = options.write.with_suffix(".md")
        before, _, rest = page.read_text().partition(BEGIN)
        table = "\n".join([HEAD, *map(str, rows)])
        page.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}")
        options.write.with_suffix(".svg").write_text(drawn(rows))


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


def drawn(rows: Sequence[Row]) -> str:
    panels = [
        ("messages of each launcher, mean", [(row, row.messages) for row in rows], "{:.0f}"),
        ("seconds until all agree", [(row, row.seconds) for row in rows], "{:.2f}"),
    ]
    sizes = sorted({row.launchers for row in rows})
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 300" font-family="sans-serif" font-size="12">',
        "<title>What a lost node costs, by the number of launchers</title>",
        '<rect width="760" height="300" fill="white"/>',
    ]
    for index, (title, points, form) in enumerate(panels):
        left, top, width, height = 50 + 380 * index, 40, 290, 200
        highest = max(value for _, value in points) or 1.0
        parts.append(f'<text x="{left}" y="24" font-weight="bold">{title}</text>')
        parts.append(f'<path d="M{left} {top} V{top + height} H{left + width}" fill="none" stroke="#888"/>')
        across = {size: left + width * at / max(1, len(sizes) - 1) for at, size in enumerate(sizes)}
        parts += [
            f'<text x="{x:.0f}" y="{top + height + 18}" text-anchor="middle">{size:,}</text>'
            for size, x in across.items()
        ]
        for name, colour, above in (("one is killed", "#1f77b4", False), ("5 % are killed", "#d62728", True)):
            chosen = [(row, value) for row, value in points if (row.killed > 1) == above]
            places = [(across[row.launchers], top + height * (1 - value / highest), value) for row, value in chosen]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
            for x, y, value in places:
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
                parts.append(f'<text x="{x:.1f}" y="{y - 7:.1f}" text-anchor="middle">{form.format(value)}</text>')
            parts.append(f'<text x="{left + 10}" y="{top + (28 if above else 12)}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, '<text x="300" y="290">launchers</text>', "</svg>", ""])


if __name__ == "__main__":
    main()
