"""The command ``holdfast-run``."""

import asyncio
import gc
import sys
from collections.abc import Sequence

from holdfast_runtime.launcher.interpreter import missing
from holdfast_runtime.launcher.node.launcher import Launcher
from holdfast_runtime.launcher.node.report import Reports, ask_for_size, print_status
from holdfast_runtime.launcher.settings import Options, parse_options


def main(arguments: Sequence[str] | None = None) -> int:
    """Launch, tell the status of a launcher, or ask it for another size of the job; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["status"]:
        return print_status(given[1:])
    if given[:1] == ["scale"]:
        return ask_for_size(given[1:])
    options = parse_options(given)
    if problem := missing(options.preload if options.python else ()):
        print(f"holdfast-run: {problem}", file=sys.stderr)
        return 2
    return asyncio.run(_launch(options))


async def _launch(options: Options) -> int:
    gc.freeze()  # what is there now stays: a recovery is not held up by looking through it
    launcher = Launcher(options)
    try:
        async with Reports(launcher):
            return await launcher.run()
    except OSError as error:
        launcher.journal.say(f"{error}")
        return 2
