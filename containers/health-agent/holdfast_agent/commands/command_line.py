"""Commands of the agent; only the file of the command in use is loaded."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Optional

COMMANDS: "dict[str, str]" = {
    "run": "watch this node until stopped",
    "status": "show the state of the running agent",
    "leave": "let all jobs leave this node, before its software is replaced",
    "check": "check this node once",
    "decide": "decide on remedies of a Kubernetes cluster until stopped",
    "ship": "only ship this node's events to the cluster's log group",
    "replay": "replay recorded logs and show the verdicts",
}
"""Name -> what it is for. The file of that name has ``declare(parser)`` and ``run(arguments) -> exit code``."""


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command; return its exit code, 2 for wrong usage."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="holdfast-agent", description="The health agent of a HyperPod node.")
    # Who says the name need not have it formatted, which would load a quarter of the standard library.
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog="holdfast-agent")
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose)
        if given[:1] == [name]:
            import_module(f"holdfast_agent.commands.{name}").declare(command)
    read = parser.parse_args(given)
    return int(import_module(f"holdfast_agent.commands.{read.command}").run(read))
