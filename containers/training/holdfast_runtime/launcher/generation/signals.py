"""The signals that a launcher receives: those for the program go to its ranks, the others end something."""

import asyncio
import signal
from collections.abc import Callable

from holdfast_runtime.launcher.generation.journal import Journal
from holdfast_runtime.launcher.ranks import LocalSlots, forward

FOR_RANKS = (signal.SIGUSR1, signal.SIGUSR2)
IGNORABLE = (signal.SIGHUP, signal.SIGQUIT)
"""Left as they are where the launcher was started with them ignored, as by nohup."""


def handle_signals(*, slots: LocalSlots, journal: Journal, ends: Callable[[int], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in FOR_RANKS:
        loop.add_signal_handler(number, _forward, number, slots, journal)
    for number in (signal.SIGINT, signal.SIGTERM, *IGNORABLE):
        if number not in IGNORABLE or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, ends, number)


def _forward(number: int, slots: LocalSlots, journal: Journal) -> None:
    sent, without = forward(number, slots.in_view)
    done = [f"sent to ranks {sent}"] if sent else []
    done += [f"ranks {without} have no handler for it and do not get it"] if without else []
    journal.tell(f"received {signal.Signals(number).name}: {'; '.join(done) or 'no rank runs here'}")
