"""Numbers of the machine, named as in the node exporter, from /proc."""

from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast_agent.detectors import Detector, Instant, Seen
from holdfast_agent.signals import Metric, Numbers

_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_TICKS_PER_S = 100.0
"""USER_HZ, which is 100 wherever Linux runs GPUs."""
_MEMORY = ("MemTotal", "MemFree", "MemAvailable")


class Machine(Detector):
    """Load, memory, CPU time and out-of-memory kills. It has no findings; an unreadable file is a lost part."""

    name = "machine"
    interval_s = 10.0

    def __init__(self, *, proc: Path = Path("/proc")) -> None:
        super().__init__()
        self._proc = proc

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        del at
        self.supported()
        found: dict[Metric, float] = {}
        for name in _FILES:
            numbers, why = self._read(name)
            found.update(numbers)
            self.parts[name], self.reason = why, why or self.reason
        self.numbers = found
        return ()

    def _read(self, name: str) -> "tuple[Numbers, str]":
        path = self._proc / name
        try:
            return _FILES[name](path.read_text("ascii")), ""
        except OSError as problem:
            return {}, f"{path}: {problem.strerror}"
        except (ValueError, IndexError) as problem:
            return {}, f"{path}: {problem}"


def _load(text: str) -> Numbers:
    found: dict[Metric, float] = {}
    for minutes, load in zip((1, 5, 15), text.split()[:3]):
        found[f"node_load{minutes}", ()] = float(load)
    return found


def _memory(text: str) -> Numbers:
    found: dict[Metric, float] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in _MEMORY:
            found[f"node_memory_{name}_bytes", ()] = float(rest.split()[0]) * 1024
    return found


def _stat(text: str) -> Numbers:
    found: dict[Metric, float] = {}
    for line in text.splitlines():
        word, *values = line.split()
        if word == "cpu":
            for mode, value in zip(_MODES, values):
                found["node_cpu_seconds_total", (("mode", mode),)] = float(value) / _TICKS_PER_S
        elif word == "btime":
            found["node_boot_time_seconds", ()] = float(values[0])
    return found


def _vmstat(text: str) -> Numbers:
    found: dict[Metric, float] = {}
    for line in text.splitlines():
        if line.startswith("oom_kill "):
            found["node_vmstat_oom_kill", ()] = float(line.split()[1])
    return found


_FILES: "Mapping[str, Callable[[str], Numbers]]" = {
    "loadavg": _load,
    "meminfo": _memory,
    "stat": _stat,
    "vmstat": _vmstat,
}
