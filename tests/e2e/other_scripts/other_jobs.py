"""One job of a ported script: started, killed at a moment, and compared with its calm run."""

import hashlib
import importlib
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from killing import PATIENT, PYTHONPATH
from porting import Script

HERE = Path(__file__).parent
RANKS, TIMEOUT_S = 2, 150
PLACES = ("any", "start", "step", "evaluation", "save", "last step", "exit", "any", "any", "any")
"""Places of the kills of ten runs; each script begins at another one."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """Results of a job."""

    code: int
    text: str
    seconds: float
    lives: Mapping[int, Mapping[int, str]]
    """Digest of the parameters by rank and finished updates."""
    results: Mapping[int, str]
    numbers: frozenset[str]
    files: Mapping[str, str]
    fired: Mapping[str, Any] | None
    differing: tuple[str, ...]


@dataclass(frozen=True)
class Moment:
    """Moment at which a rank kills itself: so long after it has reached a place."""

    rank: int
    place: str
    step: int
    after_s: float


def run_job(script: Script, source: Path, folder: Path, moment: Moment | None = None) -> Record:
    """Run a script to its end in a folder of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    record, work, own = folder / "record", folder / "work", folder / "source"
    for each in (record, work):
        each.mkdir(parents=True)
    shutil.copytree(source / script.folder, own)
    script.write(own)
    path = own / script.path
    if script.prepare:
        sys.path[:0] = [str(HERE / "stand_ins")] if str(HERE / "stand_ins") not in sys.path else []
        getattr(importlib.import_module("prepared"), script.prepare)(work, own)
    order = {
        "record": str(record),
        "script": str(path),
        "paths": [str(own), *map(str, stand_ins(path)), *map(str, others(script, source))],
        "arguments": shlex.split(script.arguments),
        "evaluation": script.evaluation,
        "filled": script.filled,
        "kill": vars(moment) if moment else None,
    }
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [PYTHONPATH, os.environ.get("PYTHONPATH")])),
        "PYTHONUNBUFFERED": "1",
        "HOLDFAST_TOKEN": "of a test",
        "OTHER_SCRIPT": json.dumps(order),
        **script.environment,
    }
    command = [sys.executable, "-m", "holdfast_runtime.launcher", "--nproc-per-node", str(RANKS), "--spares", "1"]
    command += ["--deadlines", PATIENT, "--preload", f"{script.imports},holdfast_runtime.inprocess"]
    command += ["--rdzv-id", str(folder), "--socket", str(folder / "socket"), str(HERE / "program.py")]
    begun = time.monotonic()
    with (folder / "log").open("wb") as log:
        launcher = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=work)
        try:
            code = launcher.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            code = -99
        finally:
            launcher.kill()
            launcher.wait()
    ended = {"code": code, "seconds": time.monotonic() - begun, "script": repr(script)}
    (folder / "ended").write_text(json.dumps(ended))
    return read_record(script, folder)


def calm_job(script: Script, source: Path, folder: Path) -> Record:
    """Run a script without a kill, or read what the same one has left in the folder."""
    ended = folder / "ended"
    if ended.exists() and (had := json.loads(ended.read_text()))["script"] == repr(script) and had["code"] == 0:
        return read_record(script, folder)
    return run_job(script, source, folder)


def stand_ins(path: Path) -> list[Path]:
    """Return the folders of stand-ins: that of torchvision for scripts that import it, as packages look for it."""
    every = HERE / "stand_ins"
    return [every, every / "vision"] if "torchvision" in path.read_text() else [every]


def others(script: Script, source: Path) -> list[Path]:
    """Return the folders of other repositories that a script imports."""
    return [each for name in script.beside for each in (source / name.replace("/", "+")).iterdir()]


def read_record(script: Script, folder: Path) -> Record:
    record, lives, twice = folder / "record", {}, []
    ended = json.loads((folder / "ended").read_text())
    for path in sorted(record.glob("life.*.jsonl")):
        life: dict[int, str] = {}
        for value in lines_of(path):
            if life.setdefault(value["step"], value["digest"]) != value["digest"]:
                twice += [f"update {value['step']} of {path.stem} was committed with two results"]
        lives[int(path.name.split(".")[1])] = life
    pattern = re.compile(script.numbers) if script.numbers else None
    printed = "\n".join(path.read_text(errors="replace") for path in sorted(record.glob("out.*")))
    numbers = frozenset(match.group() for match in pattern.finditer(printed)) if pattern else frozenset()
    saved = sorted(path for glob in script.files for path in (folder / "work").glob(glob))
    fired = record / "fired"
    return Record(
        code=ended["code"],
        text=(folder / "log").read_text(errors="replace"),
        seconds=round(ended["seconds"], 1),
        lives=lives,
        results={int(path.name.split(".")[1]): path.read_text() for path in record.glob("result.*")},
        numbers=numbers,
        files={path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:12] for path in saved},
        fired=json.loads(fired.read_text()) if fired.exists() else None,
        differing=tuple(twice),
    )


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Lines of JSON; a process may have died in the last one."""
    lines = path.read_text().splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


def drawn(folder: Path, number: int, *, seed: str, draw: int) -> Moment:
    """Draw a moment from the life that a calm run has recorded in its folder."""
    chance = random.Random(f"{seed} {number} {draw}")
    rank = chance.randrange(RANKS)
    entries = lines_of(folder / "record" / f"places.{rank}.jsonl")
    ends = [entry["at"] for entry in entries[1:]] + [entries[-1]["at"] + 0.3]
    life = [(*entry["place"], entry["at"], end) for entry, end in zip(entries, ends, strict=True)]
    final = max(step for _, step, _, _ in life)
    area = PLACES[(number + zlib.crc32(seed.encode())) % len(PLACES)]
    parts = [one for one in life if area in ("any", name_of(one[0], one[1], final))] or life
    moment = chance.uniform(0, sum(end - begin for *_, begin, end in parts))
    for place, step, begin, end in parts:
        if moment <= end - begin:
            return Moment(rank, place, step, round(moment, 3))
        moment -= end - begin
    raise AssertionError("the moment is in one of the parts")


def name_of(place: str, step: int, final: int) -> str:
    """Return the part of the life: what follows the last update is its exit."""
    if place != "step":
        return place
    return "exit" if step == final else "last step" if step == final - 1 else "step"


def difference(got: Record, calm: Record, *, leaving: bool = False) -> str:
    """
    Return the first thing in which a run differs from the calm one, or nothing.

    Args:
        leaving: True if a rank was killed behind the last update, where the job may end with 1.
    """
    if got.code == -99:
        return "hang"
    if got.code != 0 and not (leaving and got.code == 1 and got.results):
        return f"exit code {got.code}: {last_words(got.text)}"
    if got.differing:
        return got.differing[0]
    for rank, life in got.lives.items():
        for step, digest in life.items():
            if digest != calm.lives.get(rank, {}).get(step):
                return f"update {step} of rank {rank} has other parameters"
    for rank, digest in calm.results.items():
        if got.results.get(rank, digest if leaving else "") != digest:
            return f"rank {rank} ends with {got.results.get(rank, 'nothing')}, not {digest}"
    if got.numbers != calm.numbers:
        return f"evaluations: {sorted(got.numbers ^ calm.numbers)[:4]}"
    if not leaving and got.files != calm.files:
        return f"files: {sorted(dict(got.files.items() ^ calm.files.items()))}"
    return ""


def last_words(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    words = [line for line in lines if re.search(r"Error: |ends the job|the job ends|refused|cannot", line)]
    return " | ".join((words or lines)[-2:])[-600:]
