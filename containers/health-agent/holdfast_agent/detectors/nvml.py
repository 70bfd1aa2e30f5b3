"""GPUs by NVML, read in a child process that a stuck driver may block."""

from collections.abc import Mapping
from typing import Any, Optional

from holdfast_agent.children import Child
from holdfast_agent.detectors.detector import Detector, Facts, Instant, Seen
from holdfast_agent.nvml import Reader
from holdfast_agent.signals import Signal, conditions

NOT_BELIEVED_S = 120.0
"""A count is wrong while drivers load: HyperPod's own agent rebooted healthy nodes over it (release 1.0.1892)."""
BEGINS, BEGINS_WITHIN_S = "nvmlInit", 60.0
"""Without persistence mode it wakes every GPU of the node, which takes many seconds on a sound one."""
LINKS_EVERY_S = 30.0
ECC_WINDOW_S = 86_400.0
ECC_STEP_S = 3_600.0
ECC_MOST = 100
"""Corrected errors in a day that are normal (awslabs' catalogue of issues)."""
ABSENT_FOR_S = 60.0
"""Interval of searches for a missing library: drivers are installed while nodes run."""
SLOWED = 0xE8
"""Hardware slowdown, software and hardware thermal slowdown, power brake; a power cap is normal under load."""
SLOWED_FOR_S = 120.0
FABRIC_COMPLETED = 3
ACTIONS = {
    1: "gpu-reset",
    2: "node-reboot",
    3: "drain-p2p",
    4: "drain-and-reset",
    5: "recover-imex",
    6: "bus-reset",
    7: "system-reboot",
}


class Nvml(Detector):
    """Expects as many GPUs as were seen since boot, unless ``expected`` is given."""

    name = "nvml"
    interval_s = 5.0
    deadline_s: Optional[float] = 8.0
    lost_after_s = 60.0
    """A driver that is loaded again, after a reset or a boot, is not lost."""

    def __init__(self, *, library: str, expected: int = 0, child: Optional[Child] = None) -> None:
        super().__init__()
        self._library = library
        self._expected = expected
        self._most = self._counted = 0
        """Most GPUs seen in two consecutive polls, and those of the last poll: a single count is not trusted."""
        self._child = child or Child(serve=Reader(), kill_after_s=120.0)
        self._asked_s = float("-inf")
        self._links_s = float("-inf")
        self._began_s: Optional[float] = None
        """Start of NVML's responses without interruption."""
        self._addresses: dict[str, str] = {}
        self._ecc: dict[str, list[list[float]]] = {}
        self._links: dict[str, list[int]] = {}
        self._down: dict[str, list[int]] = {}
        self._link_errors: dict[str, list[int]] = {}
        """Of the last poll of links, which is not done each time."""
        self._slowed: dict[str, int] = {}
        self._failures = 0
        self._found: tuple[Signal, ...] = ()
        self._linked: tuple[Signal, ...] = ()
        self._stuck: tuple[Signal, ...] = ()
        """Last signal of a hanging driver, until NVML responds again: killing the child is no recovery."""
        self._adopt: list[int] = []

    def descriptors(self) -> "tuple[int, ...]":
        return self._child.descriptors()

    def due_in_s(self, at: Instant) -> float:
        until = max(self._asked_s + self.interval_s - at.boot_s, 0.0)
        return min(until or 1.0, 1.0) if self._child.waiting else until

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        if self._adopt:
            self._child.adopt(self._adopt, at.boot_s)
            self._adopt = []
        answer = self._child.poll(at.boot_s)
        tell: tuple[Seen, ...] = ()
        if answer is not None and answer.error:
            tell = self._unusable(at, answer.error)
        elif answer is not None:
            tell = self._judge(at, answer.value)
        if self._child.waiting and self._child.waited_s > self._deadline_s():
            self.hung = 1
            self.parts[""] = f"no response from NVML ({self._child.phase or BEGINS})"
            self._began_s = None
            self._stuck = (self._hung(at),)
            return tell + self.holding(at, (*self._found, *self._stuck))
        self.hung = 0 if not self._child.waiting else self.hung
        if not self._child.waiting and at.boot_s >= self._asked_s + self.interval_s:
            with_links = at.boot_s >= self._links_s + LINKS_EVERY_S
            self._asked_s = at.boot_s
            if self._child.ask({"library": self._library, "links": with_links}, at.boot_s) and with_links:
                self._links_s = at.boot_s
        return tell

    def gpus(self) -> "dict[str, str]":
        """GPUs seen by NVML: index -> PCI address."""
        return self._addresses

    def remember(self) -> "dict[str, Any]":
        return {
            **super().remember(),
            "most": self._most,
            "addresses": self._addresses,
            "ecc": self._ecc,
            "links": self._links,
            "stuck": self._child.remember(),
        }

    def restore(self, memory: "Mapping[str, Any]") -> None:
        super().restore(memory)
        self._most = int(memory.get("most", 0))
        self._addresses = dict(memory.get("addresses", {}))
        self._ecc = {key: [list(sample) for sample in kept] for key, kept in memory.get("ecc", {}).items()}
        self._links = {key: list(links) for key, links in memory.get("links", {}).items()}
        self._adopt = list(memory.get("stuck", []))

    def asking(self) -> bool:
        return self._child.waiting

    def processes(self) -> "tuple[int, ...]":
        return (self._child.pid,)

    def close(self) -> None:
        self._child.close()

    def _deadline_s(self) -> float:
        assert self.deadline_s is not None
        return BEGINS_WITHIN_S if self._child.phase == BEGINS else self.deadline_s

    def _hung(self, at: Instant) -> Signal:
        waited_s, call = round(self._child.waited_s, 1), self._child.phase or "nvmlInit"
        text = f"no response from NVML ({call}) for {waited_s:g} s (waiting process: {self._child.pid})"
        facts: Facts = {"call": call, "waited_s": waited_s}
        return self.signal(at, conditions.DRIVER_HUNG, text, facts=facts)

    def _unusable(self, at: Instant, problem: str) -> "tuple[Seen, ...]":
        self.reason = self.parts[""] = problem
        return self.holding(at, (*self._found, *self._stuck))

    def _judge(self, at: Instant, answer: "Mapping[str, Any]") -> "tuple[Seen, ...]":
        self._stuck = ()
        if "absent" in answer and not self._most:
            self._child.close()  # an idle process for nothing
            self._asked_s = at.boot_s + ABSENT_FOR_S - self.interval_s
            return self.unsupported(f"no NVML: {answer['absent']}")
        if "absent" in answer or "failed" in answer:
            return self._failed(at, answer)
        self.supported()
        self._failures = 0
        self._began_s = at.boot_s if self._began_s is None else self._began_s
        found = [*self._count(at, int(answer["count"]))]
        linked = []
        for gpu in answer["gpus"]:
            found += self._gpu(at, gpu)
            linked += self._linking(at, gpu)
        if any("links" in gpu for gpu in answer["gpus"]):
            self._linked = tuple(linked)
        self._measure(answer)
        self._found = (*found, *self._linked)
        return self.holding(at, self._found)

    def _failed(self, at: Instant, answer: "Mapping[str, Any]") -> "tuple[Seen, ...]":
        text = answer.get("text") or answer.get("absent") or ""
        if not self._most and not self._expected:
            return self.unsupported(f"NVML: no driver: {text}")
        self.supported()
        self.parts[""] = f"NVML fails, worked before: {text}"
        self._failures += 1
        began_s, self._began_s = self._began_s, None
        if self._failures < 2 or (began_s is None and not self._believed(at)):
            return ()
        facts: Facts = {"count": 0, "expected": self._expected or self._most}
        self._found = (self.signal(at, conditions.GPU_COUNT_WRONG, f"NVML fails, worked before: {text}", facts=facts),)
        return self.holding(at, self._found)

    def _believed(self, at: Instant) -> bool:
        """True once NVML has responded for two minutes; a failing one, after twenty polls."""
        if self._began_s is not None:
            return at.boot_s - self._began_s >= NOT_BELIEVED_S
        return self._failures * self.interval_s >= NOT_BELIEVED_S

    def _count(self, at: Instant, count: int) -> "list[Signal]":
        before, self._counted = self._counted, count
        self._most = max(self._most, min(count, before))
        expected = self._expected or self._most
        if max(count, before) >= expected or not self._believed(at):
            return []
        text = f"NVML counts {count} GPUs of {expected} expected"
        return [self.signal(at, conditions.GPU_COUNT_WRONG, text, facts={"count": count, "expected": expected})]

    def _gpu(self, at: Instant, gpu: "Mapping[str, Any]") -> "list[Signal]":
        index = str(gpu["index"])
        if gpu.get("pci"):
            self._addresses[index] = gpu["pci"]
        device = self._addresses.get(index, f"gpu{index}")

        def signal(condition: str, text: str, **facts: Any) -> Signal:
            return self.signal(at, condition, f"GPU {index} ({device}): {text}", device=device, facts=facts)

        if gpu.get("lost"):
            return [signal(conditions.GPU_LOST, f"NVML error {gpu['error']}: the GPU is lost or needs a reset")]
        found = []
        rows = gpu.get("remapped")
        if rows and rows[3]:
            found.append(signal(conditions.GPU_REMAP_FAILED, f"row remapping failed {rows}"))
        elif rows and rows[2]:
            found.append(signal(conditions.GPU_REMAP_PENDING, f"row remapping is pending a GPU reset {rows}"))
        action = gpu.get("recovery")
        if action:
            name = ACTIONS.get(action, str(action))
            text = f"GPU {index} ({device}): driver requests {name} (recovery action {action})"
            facts: Facts = {"action": int(action), "name": name}
            recovery = conditions.GPU_RECOVERY_ACTION
            found.append(self.signal(at, recovery, text, device=device, facts=facts))
        self._slowed[device] = self._slowed.get(device, 0) + 1 if (gpu.get("clocks") or 0) & SLOWED else 0
        if self._slowed[device] * self.interval_s >= SLOWED_FOR_S:
            reasons = hex(gpu["clocks"] & SLOWED)
            found.append(signal(conditions.GPU_CLOCKS_SLOWED, f"clocks are throttled ({reasons})", reasons=reasons))
        if gpu.get("ecc"):
            found += self._errors(at, device, gpu["ecc"], signal)
        return found

    def _errors(self, at: Instant, device: str, ecc: "list[int]", signal: Any) -> "list[Signal]":
        corrected = ecc[0]  # what is uncorrected has a line in the kernel log, which tells how it was contained
        samples = self._ecc.setdefault(device, [])
        if samples and corrected < samples[-1][1]:
            samples.clear()  # the driver was loaded again
        if not samples or at.boot_s - samples[-1][0] >= ECC_STEP_S:
            samples.append([at.boot_s, corrected])
        while len(samples) > 1 and at.boot_s - samples[0][0] > ECC_WINDOW_S:
            samples.pop(0)
        grown = int(corrected - samples[0][1])
        if grown <= ECC_MOST:
            return []
        window_s = round(at.boot_s - samples[0][0])
        text = f"{grown} corrected memory errors in {window_s} s; normal: up to {ECC_MOST} a day"
        return [signal(conditions.GPU_ECC_RATE, text, errors=grown, window_s=window_s)]

    def _linking(self, at: Instant, gpu: "Mapping[str, Any]") -> "list[Signal]":
        device = self._addresses.get(str(gpu["index"]), f"gpu{gpu['index']}")
        found = []
        links = gpu.get("links")
        if links:
            known = self._links.setdefault(device, [0] * len(links))
            known.extend([0] * (len(links) - len(known)))
            down = [number for number, active in enumerate(links) if known[number] and not active]
            self._links[device] = [int(known[number] or bool(active)) for number, active in enumerate(links)]
            twice = [number for number in down if number in self._down.get(device, [])]
            self._down[device] = down
            if twice:
                text = f"GPU {device}: NVLinks {twice} were active, now inactive"
                facts: Facts = {"links": ",".join(map(str, twice))}
                found.append(self.signal(at, conditions.NVLINK_ERROR, text, device=device, facts=facts))
        fabric = gpu.get("fabric")
        if fabric and fabric[0] == FABRIC_COMPLETED and fabric[1] != 0:
            text = f"GPU {device}: registration with the fabric ended with NVML error {fabric[1]}"
            facts_of: Facts = {"status": int(fabric[1])}
            found.append(self.signal(at, conditions.FABRIC_MANAGER_DOWN, text, device=device, facts=facts_of))
        return found

    def _measure(self, answer: "Mapping[str, Any]") -> None:
        self.numbers = {("holdfast_gpu_count", ()): float(answer["count"])}
        for gpu in answer["gpus"]:
            index = str(gpu["index"])
            labels = (("gpu", index), ("pci_bus_id", self._addresses.get(index, "")))
            if gpu.get("link_errors"):
                self._link_errors[index] = gpu["link_errors"]
            for name, value in _measured({**gpu, "link_errors": self._link_errors.get(index)}):
                if value is not None:
                    self.numbers[name, labels] = float(value)


def _measured(gpu: "Mapping[str, Any]") -> "list[tuple[str, Optional[float]]]":
    pairs = {
        "utilization": ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL"),
        "ecc": ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"),
        "link_errors": ("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"),
    }
    power_mw, memory, rows = gpu.get("power_mw"), gpu.get("memory"), gpu.get("remapped")
    measured: list[tuple[str, Optional[float]]] = [
        ("DCGM_FI_DEV_GPU_TEMP", gpu.get("temperature_c")),
        ("DCGM_FI_DEV_POWER_USAGE", None if power_mw is None else power_mw / 1000),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", gpu.get("clocks")),
        ("DCGM_FI_DEV_THERMAL_VIOLATION", gpu.get("heat_ns")),
    ]
    for key, names in pairs.items():
        measured += zip(names, gpu.get(key) or ())
    if memory:
        measured += zip(("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"), (size / (1 << 20) for size in memory))
    if rows:
        names_of = (
            "CORRECTABLE_REMAPPED_ROWS",
            "UNCORRECTABLE_REMAPPED_ROWS",
            "ROW_REMAP_PENDING",
            "ROW_REMAP_FAILURE",
        )
        measured += zip((f"DCGM_FI_DEV_{name}" for name in names_of), rows)
    return measured
