"""``holdfast-agent status``: state of the running agent."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from holdfast_agent.commands.configured import configured, declare_configuration
from holdfast_agent.status import ask_status
from holdfast_common import visible


def declare(parser: argparse.ArgumentParser) -> None:
    declare_configuration(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0: healthy; 1: an open incident requires a remedy; 2: no response from an agent."""
    configuration = configured(arguments)
    if configuration is None:
        return 2
    path = Path(configuration.status_path)
    try:
        status = ask_status(path)
    except (OSError, ValueError) as error:
        print(f"error: no response from the agent at {path}: {error}; is holdfast-agent running?", file=sys.stderr)
        return 2
    print(json.dumps(status) if arguments.json else visible(_text(status)))
    return 1 if any(one["remedy"] != "none" for one in status["incidents"]) else 0


def _text(status: "dict[str, Any]") -> str:
    head = f"{status.get('node') or status.get('host')} of {status.get('cluster') or 'no cluster'}"
    lines = [f"{head}: agent {status['pid']} since {status['since_s']:.0f} s, mode {status['mode']}", ""]
    for one in status["detectors"]:
        ago = "never" if one["looked_s_ago"] is None else f"{one['looked_s_ago']:.0f} s ago"
        state = "failed" if one["failed"] else f"{one['hung']} hung" if one["hung"] else one["support"]
        lines.append(f"{one['name']:16} {state:14} {ago:10} {one['reason']}".rstrip())
    for one in status["lost"]:
        name = f"{one['detector']} ({one['part']})" if one["part"] else one["detector"]
        lines.append(f"lost: {name}: {one['why']} (it worked on this node before)")
    lines.append("")
    for one in status["incidents"]:
        asks = one["remedy"] + (" at the boundary" if one["when"] == "boundary" and one["remedy"] != "none" else "")
        lines.append(f"{one['incident']} {one['fault']} {one['device']}: {asks}")
        lines += [f"    {text}" for text in one["evidence"]]
    if not status["incidents"]:
        lines.append("no open incident")
    if status["remedy"]["phase"] != "idle" or status["remedy"]["problem"]:
        lines.append(f"remedy: {status['remedy']['phase']} {status['remedy']['problem']}".rstrip())
    for name in ("events", "state"):
        if status[name]["problem"]:
            lines.append(f"{name}: {status[name]['problem']}")
    lines += [f"{one['name']}: {one['problem']}" for one in status["beside"] if one["problem"]]
    return "\n".join(lines)
