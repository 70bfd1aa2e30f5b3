"""Checks on one GPU: each is alone with its time limit, and what they find is written and shown."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import gpu_table
from distributions import ROOT

sys.path.append(str(ROOT / "tests" / "gpu" / "one"))

import suite

PROGRAM = """
import sys, time
sys.path.insert(0, {folder!r})
import suite
from suite import Check

def passes(device):
    return {{"device": device}}

def fails(device):
    assert False, "a promise is broken"

def raises(device):
    raise RuntimeError("CUDA error")

def hangs(device):
    time.sleep(60)

CHECKS = (
    Check("T3", "hangs", "", 1.0, hangs), Check("T4", "fails", "", 30, fails), Check("T2", "raises", "", 30, raises),
    Check("T1", "passes", "", 30, passes),
)
suite._machine = lambda: {{"gpu": "none"}}
if __name__ == "__main__":
    raise SystemExit(suite.main(CHECKS))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(folder=str(ROOT / "tests" / "gpu" / "one")))
    return path


def run(program: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, str(program), "--out", str(program.parent / "gpu.json"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_check_that_hangs_fails_or_raises_lets_the_others_run(program: Path) -> None:
    code, text = run(program)

    found = json.loads((program.parent / "gpu.json").read_text())
    assert code == 1
    assert {name: row["outcome"] for name, row in found["checks"].items()} == {
        "T3": "timed out", "T4": "failed", "T2": "failed", "T1": "passed",
    }  # fmt: skip
    assert found["checks"]["T4"]["error"] == "a promise is broken"
    assert "CUDA error" in found["checks"]["T2"]["error"]
    assert found["checks"]["T1"]["figures"] == {"device": "cuda"}
    assert "T1 passed" in text


def test_one_check_is_run_by_its_name_and_the_results_of_the_others_stay(program: Path) -> None:
    run(program, "--only", "T4")
    code, _ = run(program, "--only", "T1", "T9")

    found = json.loads((program.parent / "gpu.json").read_text())
    assert code == 0, "T9 is of the other program"
    assert found["checks"].keys() == {"T4", "T1"}


def test_a_name_that_no_check_has_is_refused(program: Path) -> None:
    code, text = run(program, "--only", "T12")

    assert (code, text.splitlines()) == (2, [f"got --only T12; allowed: {' '.join(suite.NAMES)}; see --help"])


def test_all_twelve_are_in_two_programs_of_four_minutes_each() -> None:
    limits: dict[str, list[float]] = {}
    for name in gpu_table.PROGRAMS:
        tree = ast.parse((gpu_table.FOLDER / name).read_text())
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        checks = [call.args for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Check"]
        limits[name] = [ast.literal_eval(arguments[3]) for arguments in checks]

    assert all(sum(each) <= 240 for each in limits.values()), limits
    assert {row[0] for row in gpu_table.rows()} == set(suite.NAMES)


def test_what_did_not_run_on_a_gpu_is_shown_as_not_run(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    row = {"outcome": "passed", "figures": {"seconds": 1}, "error": ""}
    machine = {"device": "cuda", "gpu": "H100", "torch": "2.13.0", "date": "2026-12-01"}
    results.write_text(json.dumps({"machine": machine, "checks": {"T3": row}}))

    shown = {found[0]: found[3] for found in gpu_table.rows(results=results)}
    assert shown["T3"] == 'passed on H100, torch 2.13.0, 2026-12-01: `{"seconds": 1}`'
    assert set(shown.values()) == {shown["T3"], "not run"}
    results.write_text(json.dumps({"machine": {**machine, "device": "cpu"}, "checks": {"T3": row}}))
    assert {found[3] for found in gpu_table.rows(results=results)} == {"not run"}, "a rehearsal proves nothing"
