"""``holdfast-agent run``: watch this node."""

import argparse
import gc
import sys

from holdfast_agent.commands.configured import configured, declare_configuration
from holdfast_agent.configuration import DEFAULT_PATH
from holdfast_agent.service import LockedError, serve


def declare(parser: argparse.ArgumentParser) -> None:
    declare_configuration(parser)


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0 when stopped; 2 for a mistake, or when another agent runs here."""
    configuration = configured(arguments)
    if configuration is None:
        return 2
    gc.collect()
    gc.freeze()
    try:
        serve(configuration, file=arguments.config or DEFAULT_PATH, assignments=arguments.assignments)
    except (LockedError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
