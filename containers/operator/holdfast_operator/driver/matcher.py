"""Matches of users' patterns, in a process of its own: a pattern may take exponential time, in which no thread runs."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence

from holdfast_operator.jobs import LogRule
from holdfast_operator.logs import Match

SILENT_S = 60.0
"""Time after which the process is lost; it limits a rule's CPU time itself."""


class SlowPatternError(Exception):
    """A rule's patterns took too much time."""


class Matcher:
    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def matched(self, rule: LogRule, lines: Sequence[str]) -> list[Match]:
        """Raises: SlowPatternError."""
        request = {"pattern": rule.pattern, "stop": rule.stop_pattern, "lines": lines}
        answer = self._asked(json.dumps(request).encode() + b"\n")
        found = json.loads(answer) if answer else None
        if found is None:
            raise SlowPatternError
        return [Match(*one) for one in found]

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _asked(self, request: bytes) -> bytes:
        process = self._process = self._process or _started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
            answer = process.stdout.readline() if select.select([process.stdout], [], [], SILENT_S)[0] else b""
        except OSError:  # it was killed, as by a limit of memory
            answer = b""
        if not answer:
            self.close()
        return answer


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast_operator.logs"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
