"""
Whatever a file holds, a command that reads it ends with an exit code of its own and words: never with a traceback,
never without an end, and in memory that does not grow from one file to the next.
"""

import gc
import json
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from broken_files import broken_text, broken_value, held

from holdfast import cli

ROOT = Path(__file__).parents[3]
CASES = ROOT / "tests" / "cases"
FEW, MANY = 25, 3_000
LONGEST_S = 30.0
"""For one file, on a machine that does other work too."""
GROWTH_MB = 150
"""Over all files after the first tenth, which loads what is loaded once: tables of types, rules, fonts."""

ENVIRONMENTS = sorted((ROOT / "environments").glob("*.yaml"))
TEMPLATES = sorted((CASES / "templates").glob("*.json"))
REQUESTS = sorted((CASES / "import").glob("*.json"))
LOGS = sorted((CASES / "events").glob("*.jsonl"))
Inputs = Iterator[list[str]]
"""Words of a command for each broken file, which was written just before."""


def checked(folder: Path, chance: Random) -> Inputs:
    """Environments and templates, the latter as JSON and as YAML."""
    while True:
        path = chance.choice([*ENVIRONMENTS, *TEMPLATES])
        text = path.read_text()
        if path.suffix == ".json" and chance.random() < 0.6:
            text = json.dumps(broken_value(json.loads(text), chance), indent=1)
        broken = folder / f"broken{chance.choice(('.yaml', path.suffix))}"
        broken.write_bytes(broken_text(text, chance) if chance.random() < 0.7 else held(text))
        yield ["check", str(broken), "--offline"]


def imported(folder: Path, chance: Random) -> Inputs:
    """Requests of CreateCluster and provisioning parameters, together or alone."""
    while True:
        words = ["import", "--name", "mine", "--region", "us-west-2"]
        for path in REQUESTS if chance.random() < 0.7 else [chance.choice(REQUESTS)]:
            text = json.dumps(broken_value(json.loads(path.read_text()), chance), indent=1)
            broken = folder / path.name
            broken.write_bytes(broken_text(text, chance) if chance.random() < 0.4 else held(text))
            words += ["--config", str(broken)]
        yield words


def logs(folder: Path, chance: Random) -> Iterator[Path]:
    """Event logs: values of any kind in some events, lines out of order, torn, repeated, or of other bytes."""
    while True:
        lines = chance.choice(LOGS).read_text().splitlines()
        for _ in range(chance.randint(1, 25)):
            at = chance.randrange(len(lines))
            try:
                lines[at] = json.dumps(broken_value(json.loads(lines[at]), chance))
            except ValueError:
                lines.insert(at, lines[chance.randrange(len(lines))])
        if chance.random() < 0.2:
            chance.shuffle(lines)
        text = "\n".join(lines)
        path = folder / "broken.jsonl"
        path.write_bytes(broken_text(text, chance) if chance.random() < 0.3 else held(text))
        yield path


def incidents_of_logs(folder: Path, chance: Random) -> Inputs:
    for path in logs(folder, chance):
        ways = [["--json"], [], ["--html", str(folder / "page.html")]]
        yield ["incidents", "--events", str(path), "--environment", "local", *chance.choice(ways)]


def plans_of_logs(folder: Path, chance: Random) -> Inputs:
    for path in logs(folder, chance):
        way = ["--json"] if chance.random() < 0.5 else []
        yield [
            "plan",
            "--instances",
            "4",
            "--instance-type",
            "ml.p5.48xlarge",
            "--events",
            str(path),
            "--runs",
            "2",
            *way,
        ]


VERBS: dict[str, Callable[[Path, Random], Inputs]] = {
    "check": checked,
    "import": imported,
    "incidents": incidents_of_logs,
    "plan": plans_of_logs,
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_broken_file_ends_a_command_in_words(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_all(verb, FEW, tmp_path, monkeypatch)


@pytest.mark.e2e
@pytest.mark.parametrize("verb", VERBS)
def test_three_thousand_broken_files_end_a_command_in_words_and_leave_no_memory_behind(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown_mb = run_all(verb, MANY, tmp_path, monkeypatch)

    assert grown_mb < GROWTH_MB


def run_all(verb: str, count: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """Run so many; how many MB the process has grown after the first tenth."""
    monkeypatch.chdir(ROOT)
    inputs = VERBS[verb](folder, Random(f"{verb} {count}"))
    begun_mb = 0.0
    for number in range(count):
        words = next(inputs)
        begun = time.monotonic()
        code, out, err = run(words, monkeypatch)
        context = (number, words)
        assert code in (0, 1, 2), (context, err[-2000:])
        assert code == 0 or (out + err).strip(), context
        if verb == "import" and code == 0:
            assert isinstance(yaml.safe_load(out), dict), context
        assert time.monotonic() - begun < LONGEST_S, context
        if number == count // 10:
            gc.collect()
            begun_mb = resident_mb()
    gc.collect()
    return resident_mb() - begun_mb


def run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    """Exit code, standard output and standard error, on streams as strict as a pipe's. Raises what has a traceback."""
    out, err = (TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    monkeypatch.setattr("sys.argv", ["holdfast", *words])
    code: Any = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            cli.main()
    except SystemExit as ended:
        code = ended.code or 0
    told = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return int(code), told[0], told[1]


def resident_mb() -> float:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * resource.getpagesize() / 1e6
