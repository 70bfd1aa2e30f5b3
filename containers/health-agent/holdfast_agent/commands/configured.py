"""What every command takes that reads the configuration."""

import argparse
import sys
from pathlib import Path
from typing import Optional

from holdfast_agent.configuration import Configuration, ConfigurationError, load


def declare_configuration(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument(
        "--config", metavar="FILE", help="JSON file of keys; default: /etc/holdfast/agent.json, if it is there"
    )
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="assignments", help="over what the file says"
    )


def configured(arguments: argparse.Namespace) -> Optional[Configuration]:
    """The configuration; None when it is wrong, after every mistake was told."""
    try:
        return load(file=Path(arguments.config) if arguments.config else None, assignments=arguments.assignments)
    except ConfigurationError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=sys.stderr)
        return None
