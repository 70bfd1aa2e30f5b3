"""Test of GPUs and links by their drivers and NVIDIA's diagnosis."""

import os
import shutil
import time
from collections.abc import Mapping
from typing import Any, Optional

from holdfast_agent.burn_in.trial import Trial
from holdfast_agent.children import Child, Program
from holdfast_agent.fabric import read_tree
from holdfast_agent.nvml import Reader

ANSWERS_WITHIN_S = 20.0
DIAGNOSIS_S = 120.0
LEAST_FOR_DIAGNOSIS_S = 60.0
"""`dcgmi diag -r 2` takes minutes; a rehearsal of seconds leaves it out."""


def gpus(*, seconds: float, library: str, expected: int) -> Trial:
    """Check each GPU by NVML and, given a minute, DCGM's medium diagnosis."""
    reported, problem = _asked(Reader(), {"library": library, "links": True})
    if reported is None:
        return Trial("gpus", problems=(f"no response from NVML: {problem}",))
    if "absent" in reported:
        wrong = (f"{expected} GPUs expected, but NVML is not available",) if expected else ()
        return Trial("gpus", problems=wrong, skipped="" if wrong else f"no NVML: {reported['absent']}")
    if "failed" in reported:
        return Trial("gpus", problems=(f"NVML fails: {reported['text']}",))
    problems = [problem for gpu in reported["gpus"] for problem in _wrong_with(gpu)]
    if reported["count"] < expected:
        problems.append(f"NVML counts {reported['count']} GPUs of {expected} expected")
    dcgmi = shutil.which("dcgmi")
    if dcgmi and seconds >= LEAST_FOR_DIAGNOSIS_S:
        problems += _diagnosed(dcgmi, seconds)
    return Trial("gpus", tuple(problems), {"gpus_count": float(reported["count"])})


def links(*, root: str) -> Trial:
    """Check that ports of the same kind are in the same state."""
    devices, problem = _asked(read_tree, {"root": root})
    if devices is None:
        return Trial("links", problems=(f"{root} does not answer: {problem}",))
    if not devices:
        return Trial("links", skipped=f"no device in {root}")
    ports = [(f"{name}/{number}", port) for name, one in devices.items() for number, port in one["ports"].items()]
    down = [name for name, port in ports if port["state"] != "ACTIVE"]
    # All down is a fabric that is not in use; some down is a fault of these.
    problems = (
        (f"ports {', '.join(down)} are not active, {len(ports) - len(down)} are",) if 0 < len(down) < len(ports) else ()
    )
    return Trial("links", problems, {"links_active": float(len(ports) - len(down))})


def _wrong_with(gpu: "Mapping[str, Any]") -> "list[str]":
    name = f"GPU {gpu['index']} ({gpu.get('pci', 'unknown')})"
    rows = gpu.get("remapped") or [0, 0, 0, 0]
    ecc = gpu.get("ecc") or [0, 0]
    found = []
    if "error" in gpu:
        found.append(f"{name}: NVML error {gpu['error']}")
    if rows[3]:
        found.append(f"{name}: row remapping failed")
    if rows[2]:
        found.append(f"{name}: row remapping is pending a GPU reset")
    if gpu.get("recovery"):
        found.append(f"{name}: driver requests recovery action {gpu['recovery']}")
    if ecc[1]:
        found.append(f"{name}: {ecc[1]} uncorrected memory errors since the driver was loaded")
    return found


def _asked(serve: Any, question: Any) -> "tuple[Optional[dict[str, Any]], str]":
    child = Child(serve=serve, kill_after_s=ANSWERS_WITHIN_S)
    child.ask(question, _now_s())
    try:
        while child.waiting and child.waited_s < ANSWERS_WITHIN_S:
            answer = child.poll(_now_s())
            if answer is not None:
                return (None, answer.error) if answer.error else (answer.value, "")
            time.sleep(0.02)
        return None, f"{child.phase or 'nothing'} takes more than {ANSWERS_WITHIN_S:g} s"
    finally:
        child.close()


def _diagnosed(dcgmi: str, seconds: float) -> "list[str]":
    program = Program(deadline_s=seconds + DIAGNOSIS_S)
    ended = program.start((dcgmi, "diag", "-r", "2"), _now_s(), os.environ)
    while ended is None:
        time.sleep(0.2)
        ended = program.poll(_now_s())
    if ended.code == 0:
        return []
    lines = [line.strip() for line in ended.output.splitlines() if "fail" in line.lower()]
    return [f"dcgmi diag: {ended.problem or '; '.join(lines[:5]) or f'exit code {ended.code}'}"]


def _now_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
