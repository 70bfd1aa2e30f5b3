"""
How many mistakes of teams ``holdfast check`` finds, and what it says wrongly of files that are right.

    python benchmarks/mistakes_found.py             # a table by subject and kind, and what is said of clean files
    python benchmarks/mistakes_found.py --in-json   # templates in YAML are written as JSON before they are checked
    python benchmarks/mistakes_found.py --missed    # the mistakes that are not found, with what they are and their page
    python benchmarks/mistakes_found.py --only kms  # one subject

The mistakes and the clean files are in ``tests/cases/mistakes``, written from AWS's pages and not from the rules.
Exit status 1 when fewer than 95 % are found, or when anything is said of a clean file.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from mistakes import KINDS, Entry, clean_files, found, kind_of, load, said_of_clean, subjects
from rich.console import Console
from rich.table import Table

ENOUGH_PERCENT = 95


def main() -> int:
    arguments = _arguments()
    console = Console(width=160)
    entries = [one for one in load() if arguments.only in (None, one.subject)]
    hits = [one for one in entries if found(one.mistake, in_json=arguments.in_json)]
    console.print(_table(entries, hits=hits))
    if arguments.missed:
        for one in entries:
            if one not in hits:
                console.print(
                    f"{one.subject}: {one.mistake.id}: {one.mistake.what}\n    {one.mistake.source}", markup=False
                )
    alarms = 0
    for path in clean_files():
        in_json = arguments.in_json and kind_of(path) == "yaml template"
        for alarm in sorted(said_of_clean(path, in_json=in_json), key=str):
            alarms += 1
            console.print(f"clean {path.name}: {alarm.severity}: {alarm.path}: {alarm.message}", markup=False)
    console.print(f"{alarms} findings in {len(clean_files())} clean files")
    return int(100 * len(hits) < ENOUGH_PERCENT * len(entries) or alarms > 0)


def _table(entries: list[Entry], *, hits: list[Entry]) -> Table:
    table = Table(title="mistakes found, by subject")
    table.add_column("subject")
    for kind in (*KINDS, "all"):
        table.add_column(kind, justify="right")
    for subject in subjects(entries):
        table.add_row(subject, *_cells(*([one for one in some if one.subject == subject] for some in (entries, hits))))
    table.add_section()
    table.add_row("all", *_cells(entries, hits))
    return table


def _cells(entries: list[Entry], hits: list[Entry]) -> list[str]:
    total, found_of = (Counter[str](one.mistake.kind for one in some) for some in (entries, hits))
    parts = [(found_of[kind], total[kind]) for kind in KINDS] + [(len(hits), len(entries))]
    return [f"{hit} of {count} ({hit / count:.0%})" if count else "" for hit, count in parts]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How many mistakes of teams the checks find.")
    parser.add_argument(
        "--in-json", action="store_true", help="write templates in YAML as JSON before they are checked"
    )
    parser.add_argument("--missed", action="store_true", help="list the mistakes that are not found")
    parser.add_argument("--only", metavar="SUBJECT", help="one subject alone")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
