import argparse
import sys
from pathlib import Path
from typing import Optional

from holdfast_agent.configuration import Configuration, ConfigurationError, load


def declare_configuration(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", metavar="FILE", help="JSON configuration file; default: /etc/holdfast/agent.json, if it exists"
    )
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="assignments", help="overrides the file"
    )


def configured(arguments: argparse.Namespace) -> Optional[Configuration]:
    try:
        return load(file=Path(arguments.config) if arguments.config else None, assignments=arguments.assignments)
    except ConfigurationError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=sys.stderr)
        return None
