"""History of a node, which outlives incidents, restarts and reboots."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_MOST = 200
_SAME_CRASH_S = 60.0
"""Lines of one crashing job come within seconds; a restart takes longer."""


@dataclass
class History:
    """Reboots for faults, and jobs ended by a device's errors. Times are the engine's."""

    cures: "list[tuple[str, str, str, float]]" = field(default_factory=list)
    """Fault, device, which part of it (such as a row of memory), and time of the reboot."""
    crashes: "dict[str, list[tuple[int, float]]]" = field(default_factory=dict)
    """Condition and device -> process id (0: not known) and time of the latest line, one per job."""

    def cured(self, fault: str, device: str, at_s: float, *, part: str = "") -> None:
        self.cures = [*self.cures, (fault, device, part, at_s)][-_MOST:]

    def was_cured(self, fault: str, device: str, *, since_s: float, part: str = "") -> bool:
        """True if the same fault of the same device, and part if known, led to a reboot."""
        parts = [one[2] for one in self.cures if one[:2] == (fault, device) and one[3] >= since_s]
        return any(not part or one in ("", part) for one in parts)

    def reboots(self, fault: str, device: str, *, since_s: float) -> int:
        """Number of reboots for the fault of the device, whatever its part."""
        return len(
            {at_s for known, where, _, at_s in self.cures if (known, where) == (fault, device) and at_s >= since_s}
        )

    def crashed(self, key: str, *, pid: int, at_s: float, since_s: float) -> int:
        """Number of jobs ended by this since then, with the present one."""
        jobs = [job for job in self.crashes.get(key, []) if job[1] >= since_s]
        known = next((place for place, job in enumerate(jobs) if pid and job[0] == pid), None)
        if known is None and jobs and at_s - jobs[-1][1] < _SAME_CRASH_S:
            known = len(jobs) - 1
        if known is None:
            jobs.append((pid, at_s))
        else:
            jobs[known] = (jobs[known][0] or pid, max(at_s, jobs[known][1]))
        self.crashes[key] = jobs[-_MOST:]
        while len(self.crashes) > _MOST:
            del self.crashes[next(iter(self.crashes))]
        return len(jobs)

    def snapshot(self) -> "dict[str, Any]":
        return {
            "cures": [list(one) for one in self.cures],
            "crashes": {key: [list(job) for job in jobs] for key, jobs in self.crashes.items()},
        }

    @staticmethod
    def restored(values: Mapping[str, Any]) -> "History":
        return History(
            cures=[(str(fault), str(device), str(part), float(at_s)) for fault, device, part, at_s in values["cures"]],
            crashes={
                str(key): [(int(pid), float(at_s)) for pid, at_s in jobs] for key, jobs in values["crashes"].items()
            },
        )
