"""Run a cell of the grid, and judge it."""

import json
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cells import CALM, PAUSES, RANKS, SNAPSHOTS, WARM, Cell
from killing import QUICK
from ports import free_ports
from warm_jobs import HUNG, PRELOAD, environment_of, run_launchers

HERE = Path(__file__).parent
PROGRAM = HERE / "program.py"
DEADLINE_S = 45.0
"""Of a job that takes 4 s on an idle machine."""
COMPARED = ("parameters", "buffers", "state", "groups", "modes", "flags", "switches", "result")
INSIDE = ("forward", "backward", "before", "vote")
TAIL = 25
PREFIXES = re.compile(r"Error: |holdfast-run|ends the job|the job ends|refused|differs?|cannot")
"""Lines of the log that a user reads as a message; a traceback's lines of code are none."""
BLUNDERS = re.compile(r"(TypeError|AttributeError|NameError|KeyError|IndexError|AssertionError)\b")
"""Of the form itself, or of a runtime that stumbles: no message."""


@dataclass(frozen=True)
class Outcome:
    """What happened to a job."""

    codes: tuple[int, ...]
    """Of the launchers."""
    text: str
    killed: bool

    @property
    def hung(self) -> bool:
        return HUNG in self.codes


@dataclass(frozen=True)
class Calm:
    """A job without a kill: what each rank had at its end, or the message that ended it."""

    ranks: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    verdict: str = "same"
    message: str = ""


@dataclass(frozen=True)
class Judged:
    """What became of a cell."""

    id: str
    verdict: str
    """same, named, SILENT, hang, other, not killed, no calm run."""
    allowed: bool
    learned: tuple[str, ...] = ()
    """step:place of each survivor that noticed the loss."""
    redone: int = 0
    detail: str = ""
    seconds: float = 0.0

    @property
    def where(self) -> str:
        """Of the survivors: inside of a step's forward, backward or vote; between two steps; elsewhere in a step."""
        places = {entry.partition(":")[2] for entry in self.learned}
        if not places:
            return "unknown"
        if places <= {"between", "outset"}:
            return "between"
        return "inside" if places & set(INSIDE) else "elsewhere"


def calm_run(cell: Cell, folder: Path) -> Calm:
    """Run the job of a cell without its kill."""
    outcome = run_cell(cell, folder)
    message = named(outcome.text, cell.words)
    if not any(outcome.codes):
        ranks = printed(outcome.text)
        if len(ranks) == RANKS[cell.layout]:
            return Calm(ranks=ranks)
        return Calm(verdict="other", message=f"{len(ranks)} ranks wrote a line")
    if outcome.hung:
        return Calm(verdict="hang", message=last_words(outcome.text))
    return Calm(verdict="named" if message else "other", message=message or last_words(outcome.text))


def judged(cell: Cell, calm: Calm, folder: Path) -> Judged:
    """Run a cell, if its calm run ended well, and compare."""
    if cell.place == CALM or calm.verdict != "same":
        if calm.verdict == "same":
            verdict = "SILENT" if cell.verdict == "refused" else "same"
        else:
            verdict = calm.verdict if calm.verdict != "other" else "no calm run"
        return Judged(cell.id, verdict, allowed=verdict in cell.allowed, detail=calm.message)
    began = time.monotonic()
    outcome = run_cell(cell, folder)
    ranks = printed(outcome.text)
    learned = tuple(entry for rank, line in sorted(ranks.items()) for entry in line["learned"])
    redone = max((line["redone"] for line in ranks.values()), default=0)
    verdict, detail = _verdict(cell, calm, outcome, ranks=ranks)
    return Judged(
        cell.id,
        verdict,
        allowed=verdict in cell.allowed,
        learned=learned,
        redone=redone,
        detail=detail,
        seconds=round(time.monotonic() - began, 1),
    )


def _verdict(cell: Cell, calm: Calm, outcome: Outcome, *, ranks: Mapping[int, Mapping[str, Any]]) -> tuple[str, str]:
    if outcome.hung:
        return "hang", last_words(outcome.text)
    if not outcome.killed:
        return "not killed", last_words(outcome.text)
    if any(code not in (0, -9) for code in outcome.codes) or all(outcome.codes):
        message = named(outcome.text, cell.words)
        return ("named", message) if message else ("other", last_words(outcome.text))
    if cell.layout == "elastic":
        found = differences_of_sums(ranks, calm.ranks)
    elif len(ranks) != len(calm.ranks):
        return "other", f"ranks {sorted(ranks)} wrote a line, of {sorted(calm.ranks)}"
    else:
        found = differences(ranks, calm.ranks)
    return ("SILENT", "; ".join(found)) if found else ("same", "")


def differences(ranks: Mapping[int, Mapping[str, Any]], calm: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """What differs from the calm run, by rank."""
    found = []
    for key in COMPARED:
        wrong = [rank for rank in sorted(calm) if ranks[rank][key] != calm[rank][key]]
        if wrong:
            found.append(f"{key} at ranks {wrong}")
    return found


def differences_of_sums(ranks: Mapping[int, Mapping[str, Any]], calm: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """What differs from the calm run in an elastic job, which may have fewer ranks at its end."""
    found = []
    for key in COMPARED:
        if key in ("parameters", "state", "buffers"):
            same = sum(int(line[key]) for line in ranks.values()) == sum(int(line[key]) for line in calm.values())
        else:
            same = all(line[key] == calm[0][key] for line in ranks.values())
        if not same:
            found.append(key)
    return found


def printed(text: str) -> dict[int, dict[str, Any]]:
    """The lines of the ranks."""
    found: dict[int, dict[str, Any]] = {}
    for line in text.splitlines():
        start = line.find('{"rank": ')
        if start >= 0:
            try:
                value = json.loads(line[start:])
            except ValueError:
                continue
            found[value["rank"]] = value
    return found


def named(text: str, words: str) -> str:
    """The last message that names a thing; empty if none does."""
    last = [line for line in text.splitlines() if "holdfast-run: " in line and "the job ends" in line]
    for line in reversed([*messages(text), *last]):
        if PREFIXES.search(line) and not BLUNDERS.search(line) and re.search(words, _bare(line), re.IGNORECASE):
            return line[:600]
    return ""


def messages(text: str) -> list[str]:
    """Last lines of a log without code and without the ranks' own lines."""
    lines = [line for line in text.splitlines() if line.strip() and '{"rank": ' not in line]
    return [line for line in lines[-TAIL:] if not re.match(r"(\S+ )?\s*(File |\s{4}|\^|~)", line)]


def _bare(line: str) -> str:
    """A message without the names of files."""
    return re.sub(r"\S*/\S+", "", line)


def last_words(text: str) -> str:
    return " | ".join(messages(text)[-3:])[-600:]


def run_cell(cell: Cell, folder: Path) -> Outcome:
    """Run the job of a cell; its outcome."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "fired").mkdir(parents=True)
    nodes = RANKS["elastic"] if cell.layout == "elastic" else 1
    ports = free_ports(nodes)
    commands, environments = [], []
    for node in range(nodes):
        command = ["--nproc-per-node", str(RANKS[cell.layout] // nodes), "--spares", "0" if nodes > 1 else "1"]
        command += ["--deadlines", QUICK, "--rdzv-id", str(folder), "--preload", ",".join(PRELOAD)]
        command += ["--socket", str(folder / f"{node}.sock")]
        if nodes > 1:
            command += ["--peers", ",".join(f"127.0.0.1:{port}" for port in ports), "--node-rank", str(node)]
            command += ["--sizes", "2,3"]
        commands.append([*command, str(PROGRAM), str(folder)])
        environments.append(environment_of({**_own(folder, node), **_of_cell(cell)}))
    codes = run_launchers(commands, environments=environments, log=folder / "log", timeout_s=DEADLINE_S)
    killed = (folder / "killed").exists() or any((folder / "fired").iterdir())
    return Outcome(codes=codes, text=(folder / "log").read_text(errors="replace"), killed=killed)


def _own(folder: Path, node: int) -> dict[str, str]:
    """The environment of a launcher that has nothing in the home directory."""
    return {
        "HOLDFAST_STATUS": str(folder / f"{node}.sock"),
        "HOLDFAST_AGENT_SOCKET": str(folder / f"{node}.agent"),
        "HOLDFAST_EVENTS": str(folder / "events.jsonl"),
        "HOLDFAST_INSTANCE_ID": f"i-{node}",
        "HOLDFAST_FAULTS_FIRED": str(folder / "fired"),
        "HOLDFAST_TOKEN": "of a test",
        "OMP_NUM_THREADS": "1",
    }


def _of_cell(cell: Cell) -> dict[str, str]:
    found = {"FORM": cell.form, "LAYOUT": cell.layout.rstrip(SNAPSHOTS), "COLLECTIVE": "1" if cell.collective else "0"}
    found["SNAPSHOT_EVERY"] = {"fsdp": "1", "fsdp3": "3", "fsdp0": "12", "elastic": "1"}.get(cell.layout, "never")
    if cell.place == CALM:
        return found
    place = {"pause": "between", "mean": "between", "vote": "injected"}.get(cell.place, cell.place)
    found |= {"KILL": f"{place}:{cell.rank}:{cell.step}", "PAUSE": cell.place if cell.place in PAUSES else ""}
    found["WARM_SPARE"] = str(int(cell.layout.startswith("fsdp") and cell.place in WARM))
    return {**found, **_faults(cell)}


def _faults(cell: Cell) -> dict[str, str]:
    """A kill in the vote is the injector's: the program is not asked there."""
    if cell.place != "vote":
        return {}
    victims = ["launcher"] if cell.layout == "elastic" else ["self"]
    fault = {"kind": "SIGKILL", "phase": "vote", "rank": cell.rank, "step": cell.step, "victims": victims}
    return {"HOLDFAST_FAULTS": json.dumps([fault])}
