"""Matches of one rule and its lines per line of the input, as JSON; null where they took too much time or memory."""

import json
import resource
import signal
import sys

from holdfast_operator.logs import matched

CPU_S = 1.0
"""Of a rule and the lines of one look at a pod; 10,000 lines take about 10 ms. CPU time, since nodes may be busy."""
MOST_BYTES = 512 << 20
"""Of its address space: a container that runs out of memory may end as a whole."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    # Python's re looks for signals while it backtracks, so the handler ends a match.
    signal.signal(signal.SIGVTALRM, _expire)
    for text in sys.stdin:
        request = json.loads(text)
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S)
            answer = matched(request["pattern"], request["stop"], request["lines"])
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        except (TimeoutError, MemoryError):
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            answer = None
        print(json.dumps(answer), flush=True)


def _expire(*_: object) -> None:
    raise TimeoutError


if __name__ == "__main__":
    main()
