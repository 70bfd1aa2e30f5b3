"""Which commands there are. What a command does is in its own file, which only its use loads."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Optional

COMMANDS: "dict[str, str]" = {
    "run": "look after this node until it is ended",
    "status": "what the running agent knows",
    "check": "look at this node once",
    "ship": "put this node's events into the cluster's log group, and nothing else",
    "replay": "what the agent would have decided about recorded logs",
}
"""Name -> what it is for. The file of that name has ``declare(parser)`` and ``run(arguments) -> exit code``."""


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command that is named first; its exit code, which is 2 for a mistake of the caller."""
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
