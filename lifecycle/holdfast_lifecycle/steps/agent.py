"""
The health agent is installed and runs: what watches this node, and how much it may do.

This step owns /opt/holdfast/agent. A node without monitoring still trains, so an agent that does not run is only
reported; one that cannot be written fails the step. Where pods run the agent (EKS with an image of it), which have no
AWS credentials, the unit here only ships their events.
"""

import contextlib
import json
import os
import sys
from pathlib import Path

from holdfast_lifecycle.model import COMPUTE, CONTROLLER, SLURM, Context, StepError
from holdfast_lifecycle.node import is_active, is_written, run_program, start, stop, write_whole

UNIT = "holdfast-agent"
SHIPPING_UNIT = "holdfast-events"
PLACE = "/opt/holdfast/agent"
PROGRAM = f"{PLACE}/bin/holdfast-agent"
CONFIGURATION = "/etc/holdfast/agent.json"
_COMMAND = "/usr/local/bin/holdfast-agent"
"""In PATH of every shell."""
_PACKAGES = ("holdfast_agent", "holdfast_common")
_SUFFIXES = (".py", ".json", ".jsonl", ".typed")
_WHEELS = "agent_wheels"
_EXECUTABLE = 0o755
# Isolated: neither the folder that it is called in nor the caller's variables say which code runs.
_RUN = """\
#!{python} -IS
# Written by holdfast_lifecycle at node creation; changes are lost.
import sys

sys.path[:0] = {path!r}
from holdfast_agent.__main__ import main

sys.exit(main())
"""


def why_not(context: Context) -> str:
    if not context.health.enabled:
        return "not configured"
    if not (context.bundle / "holdfast_agent").is_dir():
        return "the bundle has no holdfast_agent"
    return ""


def configuration(context: Context) -> dict[str, object]:
    health = context.health
    on_slurm = context.role in SLURM
    return {
        "cluster.name": context.cluster_name,
        "cluster.orchestrator": "slurm" if on_slurm else "eks",
        "node.instance_id": context.instance_id,
        "node.host": os.uname().nodename,
        "events.path": context.events_path,
        "shipping.enabled": True,
        "remedies.mode": "act" if health.acts else "observe",
        # The controller's agent decides for all nodes; on EKS a Deployment does, and only pods write marks.
        "remedies.way": "slurm" if context.role in (COMPUTE, CONTROLLER) else "none",
        "remedies.breaker_share": health.breaker_share,
        "controller.enabled": context.role == CONTROLLER,
        **({"lending.enabled": True} if context.lending and context.role == CONTROLLER else {}),
        **({"burn_in.seconds": health.burn_in_s} if health.burn_in_s > 0 else {}),
        # Whoever scrapes is on another node, and has to know the token of this one.
        **({"metrics.port": health.metrics_port, "metrics.address": "0.0.0.0"} if health.metrics_port else {}),  # noqa: S104
        **({"metrics.remote_write_url": context.remote_write_url} if context.remote_write_url else {}),
        **({"checks.directory": f"{PLACE}/checks"} if health.checks else {}),
    }


def unit(context: Context) -> str:
    """systemd unit: the agent, or the shipper for an agent in a pod."""
    return UNIT if context.health.unit else SHIPPING_UNIT


def _unit_file(context: Context) -> str:
    return f"/etc/systemd/system/{unit(context)}.service"


def _files(context: Context) -> dict[str, tuple[bytes, int]]:
    files: dict[str, tuple[bytes, int]] = {}
    for package in _PACKAGES:
        for source in sorted((context.bundle / package).rglob("*")):
            if source.suffix in _SUFFIXES:
                files[f"{PLACE}/{source.relative_to(context.bundle)}"] = source.read_bytes(), 0o644
    wheels = sorted((context.bundle / _WHEELS).glob("*.whl"))
    for wheel in wheels:
        files[f"{PLACE}/wheels/{wheel.name}"] = wheel.read_bytes(), 0o644
    for name in context.health.checks:
        files[f"{PLACE}/checks/{name}"] = (context.bundle / "checks" / name).read_bytes(), _EXECUTABLE
    path = [PLACE, *(f"{PLACE}/wheels/{wheel.name}" for wheel in wheels)]
    program = _RUN.format(python=sys.executable, path=path).encode()
    files[PROGRAM] = files[_COMMAND] = program, _EXECUTABLE
    settings = json.dumps(configuration(context), indent=2, sort_keys=True) + "\n"
    files[CONFIGURATION] = settings.encode(), 0o644
    files[_unit_file(context)] = (context.bundle / f"{unit(context)}.service").read_bytes(), 0o644
    return files


def _wrong(context: Context, files: dict[str, tuple[bytes, int]]) -> list[str]:
    return [name for name, (content, mode) in files.items() if not is_written(context.path(name), content, mode=mode)]


def _left_over(context: Context, files: dict[str, tuple[bytes, int]]) -> list[Path]:
    known = {context.path(name) for name in files}
    there = context.path(PLACE).rglob("*")
    return [path for path in there if path not in known and path.suffix != ".pyc" and not path.is_dir()]


def check(context: Context) -> bool:
    if why_not(context):
        return True
    files = _files(context)
    return not _wrong(context, files) and not _left_over(context, files) and is_active(unit(context))


def apply(context: Context) -> None:
    files = _files(context)
    wrong, left = _wrong(context, files), _left_over(context, files)
    if wrong or left:
        stop(unit(context))  # first, so that whoever is interrupted leaves no agent of two versions
    for path in left:
        path.unlink()
    for name in wrong:
        content, mode = files[name]
        _write(context.path(name), content, mode)
    with contextlib.suppress(StepError):  # verify says what there is
        if _unit_file(context) in wrong:
            run_program("systemctl", "daemon-reload")
        start(unit(context))


def _write(path: Path, content: bytes, mode: int) -> None:
    """Without fsync, unlike other steps: a node that loses power here is replaced."""
    if path.name == Path(CONFIGURATION).name:
        write_whole(path, content, mode=mode)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.tmp")
    unfinished.write_bytes(content)
    unfinished.chmod(mode)
    unfinished.replace(path)


def verify(context: Context) -> str:
    why = why_not(context)
    if why:
        return f"no health agent: {why}"
    wrong = _wrong(context, _files(context))
    if wrong:
        raise StepError(
            expected="the health agent is installed",
            seen=f"not as written: {', '.join(wrong[:5])}",
            action="check for a program on the node that changes these files, and the free space of its disk",
        )
    if not context.health.unit:
        shipped = "shipped" if is_active(SHIPPING_UNIT) else f"not shipped: read 'journalctl -u {SHIPPING_UNIT}'"
        return f"a pod watches this node; its events are {shipped}"
    if not is_active(UNIT):
        return f"this node is not monitored: {UNIT} does not run; read 'journalctl -u {UNIT}'"
    return f"{UNIT} runs, and {'acts' if context.health.acts else 'observes'}"
