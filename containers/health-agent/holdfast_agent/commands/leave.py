"""``holdfast-agent leave``: let all jobs leave this node."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, Optional

from holdfast_agent.commands.configured import configured, declare_configuration
from holdfast_agent.remedies import leave_request
from holdfast_agent.status import ask_status

EVERY_S = 0.5


def declare(parser: argparse.ArgumentParser) -> None:
    declare_configuration(parser)
    parser.add_argument("--within", type=float, default=300.0, metavar="SECONDS", help="give up after it")
    parser.add_argument("--reason", default="requested by an operator", help="for the launchers' logs")


def run(arguments: argparse.Namespace) -> int:
    """
    Hand the ranks of this node over and end its spares; print one JSON object.

    Exit code 0: no launcher is left; 1: some stay; 2: no response from an agent.
    """
    configuration = configured(arguments)
    if configuration is None:
        return 2
    path = Path(configuration.status_path)
    request = leave_request(path)
    try:
        request.write_text(f"{arguments.reason or 'leave'}\n")
        found = _until_gone(path, within_s=arguments.within)
    except (OSError, ValueError) as error:
        print(f"error: no response from the agent at {path}: {error}; is holdfast-agent running?", file=sys.stderr)
        return 2
    finally:
        request.unlink(missing_ok=True)
    print(json.dumps(found))
    return 1 if found["stay"] else 0


def _until_gone(path: Path, *, within_s: float) -> "dict[str, Any]":
    until = time.monotonic() + within_s
    heard: Optional[dict[str, Any]] = None
    while True:
        status = ask_status(path)
        if status["leaving"]["reason"]:
            heard = status["leaving"]
        stay = [one["job"] for one in status["launchers"]]
        if (heard is not None and not stay) or time.monotonic() >= until:
            kept = heard["kept"] if heard is not None else {}
            return {"stay": {job: kept.get(job, "it did not leave in time") for job in stay}}
        time.sleep(EVERY_S)
