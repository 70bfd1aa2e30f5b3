"""The executor: ``python -m holdfast_agent.remedies --config FILE``, one end of a socket pair as input."""

import argparse
import signal
import socket
import sys
from pathlib import Path

from holdfast_agent.configuration import ConfigurationError
from holdfast_agent.remedies.hands import Hands
from holdfast_agent.remedies.settings import RemedySettings


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m holdfast_agent.remedies")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    try:
        settings = RemedySettings.read(config=arguments.config, overrides=arguments.set)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    # The agent decides when it ends, and closes its end of the pair then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=0) as line:
        Hands(settings=settings).serve(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
