"""
Checks on one GPU, each in a process of its own with a time limit; their figures go to one JSON file after each.

Nothing but Python with torch is needed. Both programs write to the same file.
"""

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / part) for part in ("containers/training", "containers/common")]
FILE = ROOT / "build" / "gpu.json"
PATIENCE = {"cuda": 1.0, "cpu": 20.0}
"""Of all time limits: a rehearsal shares its cores with other work."""
NAMES = tuple(f"T{number}" for number in range(12))
"""Of both programs."""
Figures = Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    name: str
    title: str
    expected: str
    """From the sources of torch and NCCL, before it ran anywhere."""
    limit_s: float
    run: Callable[[str], Figures]
    """With "cuda" or "cpu". Raises AssertionError where a promise of the runtime is broken."""


def main(checks: Sequence[Check], arguments: Sequence[str] | None = None) -> int:
    asked = _parsed(checks, arguments)
    named = {check.name: check for check in checks}
    if asked.run:
        return _in_child(named[asked.run], device=asked.device, result=asked.result)
    unknown = [name for name in asked.only if name not in NAMES]
    if unknown:
        print(f"got --only {' '.join(unknown)}; allowed: {' '.join(NAMES)}; see --help", file=sys.stderr)
        return 2
    chosen = [check for check in checks if not asked.only or check.name in asked.only]
    found = _read(asked.out)
    for check in chosen:
        row = _in_process(check, device=asked.device, out=asked.out)
        found["checks"] = {**found.get("checks", {}), check.name: row}
        found["machine"] = {**_machine(), "device": asked.device}
        _write(asked.out, found)
        print(f"{check.name} {row['outcome']} in {row['seconds']:.1f} s: {row['error'] or json.dumps(row['figures'])}")
    return int(any(found["checks"][check.name]["outcome"] != "passed" for check in chosen))


def _parsed(checks: Sequence[Check], arguments: Sequence[str] | None) -> argparse.Namespace:
    names = "\n".join(f"{check.name:4} {check.title}, {check.limit_s:g} s at most" for check in checks)
    parser = argparse.ArgumentParser(epilog=names, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="T", help="run these checks")
    parser.add_argument("--out", type=Path, default=FILE, metavar="FILE", help="results (default: build/gpu.json)")
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="cpu: rehearse the programs; proves nothing of a GPU"
    )
    parser.add_argument("--run", choices=[check.name for check in checks], help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _in_process(check: Check, *, device: str, out: Path) -> dict[str, Any]:
    result = out.with_name(f"{out.stem}-{check.name}.json")
    result.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, sys.argv[0], "--run", check.name, "--device", device, "--result", str(result)]
    limit_s = check.limit_s * PATIENCE[device]
    began = time.monotonic()
    process = subprocess.Popen(command, start_new_session=True)
    outcome = error = ""
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        outcome, error = "timed out", f"more than {limit_s:g} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its ranks too
        process.wait()
    seconds = time.monotonic() - began
    found: dict[str, Any] = {"outcome": "failed", "figures": {}, "error": f"exit code {process.returncode}"}
    if result.is_file():
        found = json.loads(result.read_text())
        result.unlink()
    if outcome:
        found |= {"outcome": outcome, "error": error}
    return {**found, "title": check.title, "expected": check.expected, "seconds": round(seconds, 2)}


def _in_child(check: Check, *, device: str, result: Path) -> int:
    found: dict[str, Any] = {"outcome": "passed", "figures": {}, "error": ""}
    try:
        found["figures"] = check.run(device)
    except AssertionError as error:
        found |= {"outcome": "failed", "error": str(error) or traceback.format_exc().splitlines()[-2].strip()}
    except Exception:  # noqa: BLE001 - whatever a driver raises belongs to the result
        found |= {"outcome": "failed", "error": traceback.format_exc()}
    _write(result, found)
    return 0


def _machine() -> dict[str, str]:
    import torch

    has_gpu = torch.cuda.is_available()
    nccl = getattr(torch.cuda, "nccl", None)
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "gpu": torch.cuda.get_device_name() if has_gpu else "none",
        "torch": torch.__version__,
        "cuda": str(torch.version.cuda),
        "nccl": ".".join(map(str, nccl.version())) if has_gpu and nccl is not None else "none",
        "python": platform.python_version(),
    }


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.is_file() else {}


def _write(path: Path, found: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found, indent=1) + "\n")
    part.replace(path)
