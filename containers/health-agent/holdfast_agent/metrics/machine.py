"""Numbers of the machine under the node exporter's names, from files of /proc that no driver can make wait."""

from contextlib import suppress
from pathlib import Path

from holdfast_agent.signals import Metric, Numbers

_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_TICKS_PER_S = 100.0
"""USER_HZ, which is 100 wherever Linux runs GPUs."""
_MEMORY = ("MemTotal", "MemFree", "MemAvailable")


def machine_numbers(proc: Path = Path("/proc")) -> Numbers:
    """Load, memory, CPU time and kills for want of memory; what cannot be read is left out."""
    found: dict[Metric, float] = {}
    with suppress(OSError, ValueError):
        loads = (proc / "loadavg").read_text("ascii").split()[:3]
        found.update({(f"node_load{minutes}", ()): float(load) for minutes, load in zip((1, 5, 15), loads)})
    with suppress(OSError, ValueError):
        for line in (proc / "meminfo").read_text("ascii").splitlines():
            name, _, rest = line.partition(":")
            if name in _MEMORY:
                found[f"node_memory_{name}_bytes", ()] = float(rest.split()[0]) * 1024
    with suppress(OSError, ValueError):
        for line in (proc / "stat").read_text("ascii").splitlines():
            word, *values = line.split()
            if word == "cpu":
                for mode, value in zip(_MODES, values):
                    found["node_cpu_seconds_total", (("mode", mode),)] = float(value) / _TICKS_PER_S
            elif word == "btime":
                found["node_boot_time_seconds", ()] = float(values[0])
    with suppress(OSError, ValueError):
        for line in (proc / "vmstat").read_text("ascii").splitlines():
            if line.startswith("oom_kill "):
                found["node_vmstat_oom_kill", ()] = float(line.split()[1])
    return found
