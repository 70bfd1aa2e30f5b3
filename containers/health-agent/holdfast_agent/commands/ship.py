"""``holdfast-agent ship``: put this node's events into the cluster's log group, where pods run the agent."""

import argparse
import sys

from holdfast_agent.commands.configured import configured, declare_configuration
from holdfast_agent.service import ship


def declare(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    declare_configuration(parser)


def run(arguments: argparse.Namespace) -> int:
    """0 when it was ended; 2 for a mistake."""
    configuration = configured(arguments)
    if configuration is None:
        return 2
    lacking = [
        name
        for name, value in (("cluster.name", configuration.cluster_name), ("events.path", configuration.events_path))
        if not value
    ]
    if lacking:
        print(f"error: {' and '.join(lacking)} must be set: whose events go where", file=sys.stderr)
        return 2
    ship(configuration)
    return 0
