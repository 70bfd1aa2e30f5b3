"""
Run parts of the end-to-end tests: ``scripts/run_parts.py [PART...]``, all without names; ``--list`` shows them.

A part with shards is run whole by its name and in part by ``name-2``. Results are lines of ``build/e2e/PART.jsonl``: a
case that passed is not run again at its commit. A checkout with changes counts as no commit.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
PARTS = ROOT / "tests" / "e2e" / "parts.yaml"
RESULTS = ROOT / "build" / "e2e"
CHANGED = "+changes"
"""End of the name of a commit whose files were changed."""
NOTHING_LEFT = 5
"""Exit code of pytest when no case is selected: all have passed at this commit."""


@dataclass(frozen=True, kw_only=True)
class Part:
    name: str
    files: Sequence[str]
    guards: Sequence[str]
    shards: int = 1
    keyword: str = ""

    def paths(self) -> list[Path]:
        """Files of the part; each glob names at least one."""
        found = []
        for pattern in self.files:
            files = sorted(ROOT.glob(pattern))
            if not files:
                raise SystemExit(f"{PARTS.name}: {self.name}: got {pattern!r}, which names no file; correct it")
            found += files
        return found


def read_parts() -> dict[str, Part]:
    """Return the parts by name, in the order of the file."""
    entries = yaml.safe_load(PARTS.read_text())
    return {name: Part(name=name, **entry) for name, entry in entries.items()}


def selected(parts: dict[str, Part], names: Sequence[str]) -> list[tuple[Part, int]]:
    """Return parts with the number of a shard, from 1."""
    whole = {part.name: [(part, number) for number in range(1, part.shards + 1)] for part in parts.values()}
    shards = {f"{name}-{number}": [(part, number)] for name, found in whole.items() for part, number in found}
    chosen: list[tuple[Part, int]] = []
    for name in names or parts:
        if name not in {**whole, **shards}:
            raise SystemExit(f"got part {name!r}; allowed: {', '.join(parts)}; see scripts/run_parts.py --list")
        chosen += {**whole, **shards}[name]
    return chosen


def main() -> int:
    """Return 1 if a case failed."""
    parser = argparse.ArgumentParser(description="Run parts of the end-to-end tests.")
    parser.add_argument("part", nargs="*", help="parts, or shards such as kills-sharded-2; all by default")
    parser.add_argument("--list", action="store_true", help="show parts, their shards and what they guard")
    options = parser.parse_args()
    parts = read_parts()
    if options.list:
        wide = max(map(len, parts))
        for part in parts.values():
            count = f"{part.shards} shard{'s' if part.shards > 1 else ''}"
            print(f"{part.name:{wide}}  {count:9}  {' '.join(part.guards)}")
        return 0
    commit = commit_of_checkout()
    RESULTS.mkdir(parents=True, exist_ok=True)
    failed = [f"{part.name}-{shard}" for part, shard in selected(parts, options.part) if not run(part, shard, commit)]
    if failed:
        print(f"failed: {' '.join(failed)}; run them again: what passed at {commit} is not repeated")
    return 1 if failed else 0


def run(part: Part, shard: int, commit: str) -> bool:
    print(f"== {part.name} {shard}/{part.shards}", flush=True)
    command = [
        sys.executable, "-m", "pytest", "-q", "--e2e", "-m", "e2e", "-p", "resuming",
        "--results", str(RESULTS / f"{part.name}.jsonl"), "--commit", commit, "--shard", f"{shard}/{part.shards}",
        *(["-k", part.keyword] if part.keyword else []), *map(str, part.paths()),
    ]  # fmt: skip
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("tests/support", "scripts"))}
    return subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode in (0, NOTHING_LEFT)


def commit_of_checkout() -> str:
    """Return HEAD, marked where files differ from it: then nothing counts as passed."""
    head = _git("rev-parse", "HEAD")
    return f"{head}{CHANGED}" if _git("status", "--porcelain", "--untracked-files=no") else head


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
