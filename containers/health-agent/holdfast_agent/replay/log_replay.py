"""Replay of one node's log through reader, recognizer and engine."""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from holdfast_agent.signals import Signal
from holdfast_agent.verdicts import (
    Engine,
    LogReader,
    Policy,
    Recognizer,
    Record,
    Verdict,
    is_worth_a_look,
    rfc_3339,
    since_boot,
)

_GZIP = b"\x1f\x8b"
_DAY_NS = 86_400_000_000_000


@dataclass(frozen=True)
class Word:
    file: str
    line: int
    time: str
    verdict: Verdict

    def as_json(self) -> "dict[str, Any]":
        verdict = self.verdict
        return {
            "time": self.time,
            "file": self.file,
            "line": self.line,
            "incident": verdict.incident,
            "fault": verdict.fault,
            "code": verdict.code,
            "device": verdict.device,
            "severity": verdict.severity.value,
            "remedy": verdict.remedy.value,
            "when": verdict.when.value,
            "withdrawn": verdict.withdrawn,
            "evidence": [{"line": one.line, "text": one.text} for one in verdict.evidence],
        }


def replayed(path: Path, *, policy: Policy) -> "Iterator[Word]":
    """
    Yield verdicts on the lines of a log; one per recognised signal. Raises OSError.

    A log may be truncated, hold NULs or invalid UTF-8; syslog's stamps without a year get the file's.
    """
    with path.open("rb") as plain:
        zipped = plain.peek(2)[:2] == _GZIP
        lines: Any = gzip.open(plain) if zipped else plain  # noqa: SIM115
        node = _Node(str(path), policy=policy, changed_ns=path.stat().st_mtime_ns)
        try:
            yield from node.words(lines)
        except EOFError as error:
            raise OSError(f"compressed file is truncated: {error}") from None


class _Node:
    def __init__(self, file: str, *, policy: Policy, changed_ns: int) -> None:
        self._file = file
        self._changed_ns = changed_ns
        self._reader: Optional[LogReader] = None
        self._recognizer = Recognizer()
        self._engine = Engine(policy=policy, node=file)

    def words(self, lines: "Iterator[bytes]") -> "Iterator[Word]":
        head, headed, reported = "", 0, 0
        for number, given in enumerate(lines, start=1):
            raw = given.decode("utf-8", "replace")
            continues = raw[:1] in (" ", "\t")
            if is_worth_a_look(raw):
                if continues and head:
                    self._read(head, 0)
                yield from self._verdicts(raw, number)
                reported = number
            if not continues and raw.strip("\0\r\n"):
                head, headed = raw, number
        if headed > reported:
            # What held long enough by the end of the log is said there.
            yield from self._verdicts(head, headed)

    def _verdicts(self, raw: str, number: int) -> "Iterator[Word]":
        seen = self._read(raw, number)
        if seen is None:
            return
        signals = (seen,) if isinstance(seen, Signal) else self._recognizer.read(seen)
        for signal in signals:
            for verdict in self._engine.see(signal, line=number):
                yield Word(file=self._file, line=number, time=_time(seen), verdict=verdict)
        if not signals and isinstance(seen, Record) and (seen.boot_s is not None or seen.time_ns):
            boot_s = seen.time_ns / 1e9 if seen.boot_s is None else seen.boot_s
            for verdict in self._engine.advance(boot_s=boot_s, time_ns=seen.time_ns):
                yield Word(file=self._file, line=number, time=_time(seen), verdict=verdict)

    def _read(self, raw: str, number: int) -> Union[Record, Signal, None]:
        if self._reader is None:
            self._reader = LogReader(year=_first_year(raw, self._changed_ns))
        return self._reader.read(raw, line=number)


def _first_year(raw: str, changed_ns: int) -> int:
    """Year of a log's first stamp without one: the latest in which it is not after the file's last change."""
    year = int(rfc_3339(changed_ns)[:4])
    first = LogReader(year=year).read(raw)
    return year - 1 if first is not None and first.time_ns > changed_ns + _DAY_NS else year


def _time(seen: Union[Record, Signal]) -> str:
    return rfc_3339(seen.time_ns) if seen.time_ns else since_boot(seen.boot_s or 0.0)
