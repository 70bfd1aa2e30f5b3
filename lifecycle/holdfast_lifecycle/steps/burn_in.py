"""
A compute node was tried out before it joins: what fails under load now does not fail in the middle of a job.

Runs the agent's deep check, keeps its figures for later nodes, and remembers failed hardware by the UUIDs of its GPUs,
which stay when the service gives the same machine another instance id. A node that failed twice is refused without a
third test. Only measurements count: a check that cannot run is reported and fails nothing. See
docs/do/health-agent.md and docs/adr/0270.
"""

import hashlib
import json
import subprocess
import time
from pathlib import Path
from typing import Any, Optional

from holdfast_common import kinds
from holdfast_lifecycle.model import Context, StepError
from holdfast_lifecycle.node import root_folder, write_whole
from holdfast_lifecycle.steps import agent

MOST_FAILURES = 2
_SLACK_S = 180.0
"""Beside the seconds asked for: starting, and the pauses between two checks."""
_TURNS = "/opt/holdfast/turns"
"""
On nodes that share one machine: they are tried out a few at a time, and their figures differ by the machine's load
alone, so they are not compared.
"""
_TURN_S = 300.0
"""Longest wait for one (`holdfast_agent.burn_in.turns`)."""
_PASSED = "/var/lib/holdfast/burn-in.json"
_LOCAL = "/var/lib/holdfast-burn-in"
_GPUS = "/proc/driver/nvidia/gpus"
_UNHEALTHY = 1
"""Exit code of a check with findings; any other but 0 means that it could not run."""
_LONGEST = 1000


def identity(context: Context) -> str:
    """Of the hardware: the UUIDs of its GPUs, or else the instance id."""
    found = set()
    for path in context.path(_GPUS).glob("*/information"):
        for line in path.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "GPU UUID" and "?" not in value:
                found.add(value.strip())
    if not found:
        return context.instance_id
    return "gpus-" + hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()[:24]


def _folder(context: Context) -> Path:
    """Shared folder of the cluster, or else one on the node."""
    if not context.fsx_mount_path:
        return context.path(_LOCAL)
    return context.path(f"{context.fsx_mount_path}/.holdfast/burn-in/{context.cluster_name}")


def _history(context: Context) -> Path:
    return _folder(context) / "failed" / f"{identity(context)}.json"


def peers(context: Context) -> Path:
    return _folder(context) / "figures" / (context.instance_type or "unknown")


def _prepare(context: Context) -> None:
    folder, figures = _folder(context), peers(context)
    ours = (folder.parent.parent, folder.parent) if context.fsx_mount_path else ()
    for path in (*ours, folder, folder / "failed", figures.parent, figures):
        root_folder(path, mode=0o755)


def failures(context: Context) -> list[dict[str, Any]]:
    """Earlier failures of this hardware, oldest first; unreadable files do not count."""
    try:
        found = json.loads(_history(context).read_text())
    except (OSError, ValueError):
        return []
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _is_left_out(context: Context) -> str:
    return agent.why_not(context) or ("" if context.health.burn_in_s > 0 else "not configured")


def _passed(context: Context) -> Optional[dict[str, Any]]:
    try:
        found = json.loads(context.path(_PASSED).read_text())
    except (OSError, ValueError):
        return None
    mine = isinstance(found, dict) and found.get("instance_id") == context.instance_id
    return found if mine else None


def check(context: Context) -> bool:
    return bool(_is_left_out(context)) or _passed(context) is not None


def apply(context: Context) -> None:
    _prepare(context)
    earlier = failures(context)
    if len(earlier) >= MOST_FAILURES:
        reported = "; ".join(
            f"{each.get('instance_id', '')}: {each.get('seen', '')}" for each in earlier[-MOST_FAILURES:]
        )
        raise StepError(
            expected=f"hardware that failed its burn-in fewer than {MOST_FAILURES} times",
            seen=f"{identity(context)} failed {len(earlier)} times ({reported})"[:_LONGEST],
            action=f"replace the instance; after a repair of its hardware, remove {_history(context)}",
        )
    began = time.monotonic()
    code, output = _deep_check(context)
    duration_s = time.monotonic() - began
    report = _report(output)
    if code == _UNHEALTHY and report is not None:
        seen = _in_words(report)[:_LONGEST]
        entry = {"time_ns": time.time_ns(), "instance_id": context.instance_id, "seen": seen}
        _write(_history(context), [*earlier, entry])
        raise StepError(
            expected="the node passes its burn-in",
            seen=seen,
            action="replace the instance, as continuous provisioning does by itself; compare other nodes' figures",
        )
    done = code == 0 and report is not None
    _write(context.path(_PASSED), {"instance_id": context.instance_id, "done": done, "remark": output[-_LONGEST:]})
    if done:
        _write(peers(context) / f"{context.instance_id}.json", report)
        _tell(context, duration_s)


def _deep_check(context: Context) -> tuple[int, str]:
    """Exit code and output of the agent's check; one that hangs means an unhealthy node."""
    seconds, is_shared = context.health.burn_in_s, context.path(_TURNS).is_dir()
    longest_s = seconds + _SLACK_S + (_TURN_S if is_shared else 0.0)
    command = [str(context.path(agent.PROGRAM)), "check", "--deep", "--seconds", f"{seconds:g}", "--json"]
    command += ["--config", str(context.path(agent.CONFIGURATION))]
    if not is_shared:
        command += ["--peers", str(peers(context))]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=longest_s,
            check=False,
            text=True,
        )
    except subprocess.TimeoutExpired:
        hung = {"problems": [f"the check did not end within {longest_s:g} s"]}
        return _UNHEALTHY, json.dumps(hung)
    except OSError as error:
        return 127, str(error)
    return done.returncode, done.stdout


def _report(output: str) -> Optional[dict[str, Any]]:
    for line in reversed(output.splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return None


def _in_words(report: dict[str, Any]) -> str:
    problems = report.get("problems")
    found = "; ".join(str(each) for each in problems) if isinstance(problems, list) else ""
    figures = report.get("figures")
    if isinstance(figures, dict) and figures:
        found += f" ({', '.join(f'{name} {value}' for name, value in sorted(figures.items()))})"
    return found or json.dumps(report)


def _write(path: Path, content: object) -> None:
    write_whole(path, (json.dumps(content, sort_keys=True) + "\n").encode())


def _tell(context: Context, duration_s: float) -> None:
    log = context.event_log()
    log.write(kind=kinds.NODE_QUALIFIED, duration_s=duration_s, detail={"seconds": context.health.burn_in_s})


def verify(context: Context) -> str:
    why = _is_left_out(context)
    if why:
        return f"no burn-in: {why}"
    passed = _passed(context)
    if passed is None:
        raise StepError(
            expected=f"{_PASSED} records that this node passed its burn-in",
            seen="it does not",
            action="check for a program on the node that removes it, and the free space of its disk",
        )
    if not passed.get("done"):
        return f"burn-in skipped, the check could not run: {str(passed.get('remark', '')).strip()[-200:]}"
    return f"passed {context.health.burn_in_s:g} s"
