"""
Run the grid, or a part of it: python tests/e2e/around_steps/run.py [--part N/M] [--results FILE] [--only REGEX].

Results are lines of JSON. What the file has as allowed is not run again; what failed is.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [
    str(HERE),
    str(HERE.parents[1] / "support"),
    *(str(HERE.parents[2] / "containers" / part) for part in ("training", "common")),
]

from cells import LAYOUTS, Cell, cells  # noqa: E402
from forms.catalogue import FORMS  # noqa: E402
from judge import Calm, Judged, calm_run, judged  # noqa: E402

MARKS = {"same": "=", "named": "n", "SILENT": "S", "hang": "H", "other": "o", "not killed": "k", "no calm run": "c"}


def main() -> int:
    """Return 1 if a verdict was not allowed."""
    options = _options()
    wanted = part_of([cell for cell in cells() if re.search(options.only, cell.id)], options.part)
    if options.list and options.json:
        counts = Counter(cell.form for cell in wanted)
        about = {name: {"row": e.row, "verdict": e.verdict, "cells": counts[name]} for name, e in FORMS.items()}
        print(json.dumps(about))
        return 0
    if options.list:
        for cell in wanted:
            print(cell.id, cell.verdict)
        print(f"{len(wanted)} cells, {len({cell.form for cell in wanted})} forms")
        return 0
    done = {one.id: one for one in read(options.results)}
    todo = [cell for cell in wanted if cell.id not in done or not done[cell.id].allowed]
    until = time.monotonic() + 60 * options.minutes
    folder = Path(tempfile.mkdtemp(prefix="grid-"))
    try:
        for one in run_cells(todo, folder, until=until, keep=options.keep):
            done[one.id] = one
            options.results.parent.mkdir(parents=True, exist_ok=True)
            with options.results.open("a") as file:
                file.write(json.dumps(asdict(one)) + "\n")
            flag = "" if one.allowed else "   NOT ALLOWED"
            print(
                f"{one.id}: {one.verdict} ({one.where}, {one.redone} redone, {one.seconds} s){flag} {one.detail[:200]}",
                flush=True,
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    shown = [done[cell.id] for cell in wanted if cell.id in done]
    print(table(shown))
    return 1 if any(not one.allowed for one in shown) or len(shown) < len(wanted) else 0


def part_of(found: Sequence[Cell], part: str) -> list[Cell]:
    """The cells of part N of M: those of a form and a layout are in one part, as they have one calm run."""
    number, _, count = part.partition("/")
    pairs = list(dict.fromkeys((cell.form, cell.calm.layout) for cell in found))
    own = set(pairs[int(number) - 1 :: int(count)])
    return [cell for cell in found if (cell.form, cell.calm.layout) in own]


def run_cells(todo: Iterable[Cell], folder: Path, *, until: float, keep: Path | None = None) -> Iterable[Judged]:
    """Run cells one after the other; a calm run is made once for each form and layout."""
    calm: dict[tuple[str, str], Calm] = {}
    for cell in todo:
        if time.monotonic() > until:
            print("time is over: run it again to do the rest", flush=True)
            return
        key = cell.form, cell.calm.layout
        if key not in calm:
            calm[key] = calm_run(cell.calm, folder / "calm")
        one = judged(cell, calm[key], folder / "job")
        if keep is not None and not one.allowed:
            source = folder / ("job" if (folder / "job").exists() and calm[key].verdict == "same" else "calm")
            target = keep / cell.id.replace("/", "_")
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(
                source, target, ignore=lambda _, names: [name for name in names if ".sock" in name or "agent" in name]
            )
        yield one


def read(path: Path) -> list[Judged]:
    """Results of a file, the newest of each cell last."""
    if not path.exists():
        return []
    values = [json.loads(line) for line in path.read_text().splitlines()]
    return [Judged(**{**value, "learned": tuple(value["learned"])}) for value in values]


def table(results: Sequence[Judged]) -> str:
    """Forms by layouts and places, and the counts."""
    rows: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for one in results:
        form, layout, place = one.id.split("/")
        short = {
            "top": "t",
            "forward": "f",
            "backward": "b",
            "vote": "v",
            "after": "a",
            "between": "w",
            "evaluation": "e",
            "pause": "p",
            "mean": "m",
        }
        bare, _, more = place.partition("+")
        rows[form][layout].append(
            f"{short.get(bare, bare)}{'+' if more else ''}{MARKS[one.verdict]}{'' if one.allowed else '!'}"
        )
    wide = max((len(name) for name in rows), default=4)
    lines = [f"{'form':{wide}}  " + "  ".join(LAYOUTS)]
    for name, layouts in rows.items():
        parts = [f"{layout}: {' '.join(layouts[layout])}" for layout in LAYOUTS if layouts[layout]]
        lines.append(f"{name:{wide}}  " + "  |  ".join(parts))
    kinds = ", ".join(f"{MARKS[name]} {name}" for name in MARKS)
    lines += [
        "",
        "places: top, forward, backward, vote, after, with (after it), evaluation, pause, mean; + after a collective",
        f"marks: {kinds}; ! not allowed",
        "",
    ]
    verdicts = Counter(one.verdict for one in results)
    wrong = Counter(one.verdict for one in results if not one.allowed)
    where = Counter(one.where for one in results if one.verdict != "no calm run")
    redone = Counter(one.redone for one in results if one.verdict == "same")
    lines.append(f"{len(results)} cells: {dict(verdicts)}")
    lines.append(f"not allowed: {dict(wrong)}")
    lines.append(f"survivors noticed the loss: {dict(where)}")
    lines.append(f"steps redone: {dict(sorted(redone.items()))}")
    lines.append(f"time: {sum(one.seconds for one in results) / 60:.1f} minutes, without calm runs")
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="1/1", help="N/M: part N of M")
    parser.add_argument("--results", type=Path, default=Path("build/grid.jsonl"), help="file of results")
    parser.add_argument("--only", default="", help="regular expression of the cells' names: form/layout/place")
    parser.add_argument("--minutes", type=float, default=38.0, help="begin no cell after so many minutes")
    parser.add_argument("--keep", type=Path, help="folder for the logs of cells that are not allowed")
    parser.add_argument("--list", action="store_true", help="show the cells")
    parser.add_argument("--json", action="store_true", help="with --list: show the forms as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
