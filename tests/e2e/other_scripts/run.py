"""
Run ported scripts of other repositories, calm and with a kill: python tests/e2e/other_scripts/run.py SCRIPTS.

SCRIPTS is a folder with <owner>+<name>/<commit>/<path>. For each repository and commit of scripts.yaml::

    git clone https://github.com/OWNER/NAME x
    git -C x worktree add SCRIPTS/OWNER+NAME/COMMIT COMMIT

Results are lines of JSON; what the file has as same or refused is not run again.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "support")]

from other_jobs import PLACES, Record, calm_job, difference, drawn, last_words, name_of, run_job  # noqa: E402
from porting import Script, scripts  # noqa: E402

DRAWS = 3
"""A moment behind the end of a quicker run is drawn again so often."""


@dataclass(frozen=True)
class Verdict:
    """Result of one run."""

    script: str
    number: int
    """Of the kill; -1 for the calm run."""
    verdict: str
    """same, refused, different or not killed."""
    where: str
    detail: str
    seconds: float


def verdicts(script: Script, source: Path, folder: Path, numbers: list[int], seed: str) -> Iterator[Verdict]:
    """Run a script calm, then with each of these kills."""
    calm = calm_job(script, source, folder / "calm")
    yield judged_calm(script, calm)
    if calm.code or script.refused:
        return
    final = max(step for life in calm.lives.values() for step in life)
    for number in numbers:
        got, where = calm, ""
        for draw in range(DRAWS):
            moment = drawn(folder / "calm", number, seed=f"{seed} {script.name}", draw=draw)
            got = run_job(script, source, folder / "killed", moment)
            if got.fired is not None:
                break
        if got.fired is None:
            yield Verdict(script.name, number, "not killed", str(moment), "", got.seconds)
            continue
        place, step = got.fired["place"]
        part = name_of(place, step, final)
        where = f"{part} of rank {got.fired['rank']} after {step} updates, {got.fired['line']}"
        detail = difference(got, calm, leaving=part == "exit")
        yield Verdict(script.name, number, "different" if detail else "same", where, detail, got.seconds)


def judged_calm(script: Script, calm: Record) -> Verdict:
    if script.refused:
        met = calm.code != 0 and re.search(script.refused, calm.text)
        words = met.group() if met else last_words(calm.text)
        return Verdict(script.name, -1, "refused" if met else "different", "", words, calm.seconds)
    detail = last_words(calm.text) if calm.code else ""
    if not detail and script.numbers and not calm.numbers:
        detail = "it has printed no evaluation"
    if not detail and len(set(calm.files)) < len(script.files):
        detail = "it has saved nothing"
    updates = max((step for life in calm.lives.values() for step in life), default=0)
    where = f"{updates} updates, {len(calm.numbers)} evaluations"
    return Verdict(script.name, -1, "different" if detail else "same", where, detail, calm.seconds)


def main() -> int:
    """Return 1 if a run differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder of the scripts")
    parser.add_argument("--results", type=Path, default=Path("build/other-scripts.jsonl"), help="file of results")
    parser.add_argument("--only", default="", help="regular expression of the scripts' names")
    parser.add_argument("--kills", type=int, default=len(PLACES), help="runs with a kill for each script. Default: 10")
    parser.add_argument("--seed", default="1", help="of the moments. Default: 1")
    parser.add_argument("--minutes", type=float, default=38.0, help="begin no script after so many minutes")
    parser.add_argument("--keep", type=Path, help="folder in which jobs are left; calm ones are not run again")
    options = parser.parse_args()
    done = read(options.results)
    until = time.monotonic() + 60 * options.minutes
    folder = options.keep or Path(tempfile.mkdtemp(prefix="other-"))
    chosen = [script for name, script in scripts().items() if re.search(options.only, name)]
    for script in chosen:
        own = {one.number for one in done if one.script == script.name and one.verdict in ("same", "refused")}
        numbers = [number for number in range(options.kills) if number not in own]
        if (not numbers or script.refused) and -1 in own:
            continue
        if time.monotonic() > until:
            print("time is over: run it again to do the rest", flush=True)
            break
        for one in verdicts(script, options.source, folder / script.name, numbers, options.seed):
            done.append(one)
            options.results.parent.mkdir(parents=True, exist_ok=True)
            with options.results.open("a") as file:
                file.write(json.dumps(asdict(one)) + "\n")
            print(f"{one.script} {one.number}: {one.verdict} ({one.where}, {one.seconds} s) {one.detail}", flush=True)
    if options.keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    print(table(chosen, done))
    newest = {(one.script, one.number): one for one in done}
    return 1 if any(one.verdict not in ("same", "refused") for one in newest.values()) else 0


def read(path: Path) -> list[Verdict]:
    return [Verdict(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def table(chosen: list[Script], done: list[Verdict]) -> str:
    """Scripts with changed lines, seconds of the calm run, kills with the same result, and what differs."""
    newest: dict[str, dict[int, Verdict]] = defaultdict(dict)
    for one in done:
        newest[one.script][one.number] = one
    rows = ["script lines calm_s kills"]
    for script in chosen:
        own = newest[script.name]
        if -1 not in own:
            continue
        kills = [one for number, one in own.items() if number >= 0]
        same = sum(one.verdict == "same" for one in kills)
        wrong = [f"{one.number}: {one.detail or one.verdict}" for one in own.values() if one.verdict != "same"]
        rows.append(f"{script.name} {script.changed_lines} {own[-1].seconds} {same}/{len(kills)} {'; '.join(wrong)}")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
