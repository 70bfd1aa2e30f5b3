"""A healthy node's /var/log/messages: HyperPod's own agent reads that file, and others write to it too."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from random import Random

from healthy.patterns import PATTERNS

_BEGAN = datetime(2026, 3, 2, tzinfo=timezone.utc)
_BOOT = (
    (0.0, "Linux version 6.1.119-129.201.amzn2023.x86_64 (mockbuild@ip) (gcc) #1 SMP PREEMPT_DYNAMIC"),
    (1.2, "BERT: Error records from previous boot:"),
    (1.201, "[Hardware Error]: event severity: fatal"),
    (2.9, "mlx5_core 0000:41:00.1: Port module event: module 1, Cable unplugged"),
    (15.0, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.144.03  Mon Dec 30 17:44:08 UTC 2024"),
)


@dataclass(frozen=True)
class Line:
    """One line of the log. Empty pattern: of a boot."""

    pattern: str
    hours: float
    boot_s: float
    text: str
    program: str

    def __str__(self) -> str:
        stamp = (_BEGAN + timedelta(hours=self.hours)).strftime("%b %e %H:%M:%S")
        kernel = f"[{self.boot_s:12.6f}] " if self.program == "kernel" else ""
        return f"{stamp} ip-10-1-0-12 {self.program}: {kernel}{self.text}"


def node_log(*, seed: int, hours: float) -> list[Line]:
    chance = Random(seed)
    reported: list[tuple[float, str, str]] = [(hour, "", text) for hour, text in _boots(chance, hours)]
    for pattern in PATTERNS:
        at = chance.expovariate(1 / pattern.hours_between)
        while at < hours:
            reported += [(at + after_s / 3600, pattern.name, text) for after_s, text in pattern.lines(chance)]
            at += chance.expovariate(1 / pattern.hours_between)
    reported.sort(key=lambda one: one[0])
    return [_line(*one, booted) for one, booted in _since(reported)]


def _boots(chance: Random, hours: float) -> Iterator[tuple[float, str]]:
    at = 0.0
    while at < hours:
        yield from ((at + second / 3600, text) for second, text in _BOOT)
        at += chance.expovariate(1 / 200)


def _since(lines: list[tuple[float, str, str]]) -> Iterator[tuple[tuple[float, str, str], float]]:
    booted = 0.0
    for one in lines:
        if one[2].startswith("Linux version"):
            booted = one[0]
        yield one, booted


def _line(hours: float, pattern: str, text: str, booted: float) -> Line:
    program, tab, rest = text.partition(": \t")
    return Line(pattern, hours, (hours - booted) * 3600, rest if tab else text, program if tab else "kernel")
