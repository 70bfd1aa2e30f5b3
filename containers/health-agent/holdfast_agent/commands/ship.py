"""``holdfast-agent ship``: ship this node's events to the cluster's log group, where pods run the agent."""

import argparse
import sys

from holdfast_agent.commands.configured import configured, declare_configuration
from holdfast_agent.service import ship


def declare(parser: argparse.ArgumentParser) -> None:
    declare_configuration(parser)


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0 when stopped; 2 for a mistake."""
    configuration = configured(arguments)
    if configuration is None:
        return 2
    lacking = [
        name
        for name, value in (("cluster.name", configuration.cluster_name), ("events.path", configuration.events_path))
        if not value
    ]
    if lacking:
        print(f"error: {' and '.join(lacking)} must be set to ship events", file=sys.stderr)
        return 2
    ship(configuration)
    return 0
