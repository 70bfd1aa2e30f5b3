"""Matches of one rule and its lines per line of the input, as JSON; null where they took too much CPU time."""

import json
import signal
import sys

from holdfast_operator.logs import matched

CPU_S = 1.0
"""Of a rule and the lines of one look at a pod; 10,000 lines take about 10 ms. CPU time, since nodes may be busy."""


def main() -> None:
    # Python's re looks for signals while it backtracks, so the handler ends a match.
    signal.signal(signal.SIGVTALRM, _expire)
    for text in sys.stdin:
        request = json.loads(text)
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S)
            answer = matched(request["pattern"], request["stop"], request["lines"])
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        except TimeoutError:
            answer = None
        print(json.dumps(answer), flush=True)


def _expire(*_: object) -> None:
    raise TimeoutError


if __name__ == "__main__":
    main()
