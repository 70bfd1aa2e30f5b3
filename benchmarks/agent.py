"""
What the health agent of a node costs, and how soon it says what is wrong.

    sudo python benchmarks/agent.py                       # all of it, about two minutes
    python benchmarks/agent.py --only lines latency       # parts

Each line has its limit, and the machine's load at the time: seconds are those of a machine that may be shared. Hung
driver and stalled mount need root; NVML is the stand-in of the local cloud, compiled here, where there is a compiler.
Exit status 1 when a limit is missed.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("containers/health-agent", "containers/common", "tests/support")]

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from running_agent import XID_79, RunningAgent  # noqa: E402
from standing_still import standing_still  # noqa: E402

from holdfast_agent.detectors import Instant, KernelLog  # noqa: E402

STAND_IN = ROOT / "holdfast/localcloud/gpus/nvml.c"
NOISE = (
    "usb 1-1: new high-speed USB device number {n} using xhci_hcd",
    'audit: type=1400 audit(1700000000.{n}:42): apparmor="STATUS" operation="profile_load" name="docker-{n}"',
    "docker0: port {n}(veth{n:07x}) entered forwarding state",
    "mlx5_core 0000:5e:00.0: Port module event: module {n}, Cable plugged",
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  ({n})",
    "perf: interrupt took too long ({n} > 2500), lowering kernel.perf_event_max_sample_rate to 79750",
    "systemd-journald[{n}]: Received client request to flush runtime journal.",
    "EXT4-fs (nvme{n}n1): mounted filesystem with ordered data mode. Quota mode: none.",
)
LINES = 400_000


@dataclass(frozen=True, kw_only=True)
class Measured:
    name: str
    value: float
    limit: float
    unit: str
    more_is_better: bool = False
    remark: str = ""

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.more_is_better else self.value <= self.limit


def log_lines(count: int, *, form: str) -> Iterator[str]:
    for number in range(count):
        text = XID_79.format(bus=number % 8) if number % 1000 == 999 else NOISE[number % len(NOISE)].format(n=number)
        if form == "kmsg":
            yield f"6,{number},{number * 100},-;{text}\n"
        else:
            stamp = f"03:{number // 60 % 60:02d}:{number % 60:02d}"
            yield f"Nov 23 {stamp} ip-10-1-0-1 kernel: [{number / 1e4:12.6f}] {text}\n"


def lines(arguments: argparse.Namespace) -> Iterator[Measured]:
    for form in ("kmsg", "syslog"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log"
            path.touch()
            detector = KernelLog(str(path))
            at = Instant(boot_s=100.0, time_ns=time.time_ns())
            detector.look(at)
            path.write_text("".join(log_lines(arguments.lines, form=form)))
            found, began_s = 0, time.process_time()
            while detector.lines < arguments.lines:
                found += len(detector.look(at))
            took_s = time.process_time() - began_s
            detector.close()
        assert found == arguments.lines // 1000, f"{found} Xids were found of {arguments.lines // 1000}"
        rate = arguments.lines / took_s
        yield Measured(name=f"kernel log, {form}", value=rate, limit=100_000, unit="lines/s", more_is_better=True)


def family(pid: int) -> list[int]:
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def memory_mb(pid: int, field: str) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{field}:")) / 1024


def cpu_s(pids: list[int]) -> float:
    ticks = os.sysconf("SC_CLK_TCK")
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / ticks


def until(holds: Callable[[], object], *, within_s: float = 60.0) -> None:
    limit_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > limit_s:
            raise SystemExit("what was waited for did not come about")
        time.sleep(0.005)


def looking_agent(folder: Path, library: Path | None) -> RunningAgent:
    (folder / "fsx").mkdir(exist_ok=True)
    agent = RunningAgent(folder, mounts__paths=str(folder / "fsx"), disks__paths=str(folder))
    if library is not None:
        answers_of(library).write_text("count=8\n")
        agent.settings["nvml.library"] = str(library)
    agent.start()
    until(lambda: all(one["support"] != "not known yet" for one in agent.status_or_none()["detectors"]))
    return agent


def rest(arguments: argparse.Namespace) -> Iterator[Measured]:
    with tempfile.TemporaryDirectory() as folder:
        agent = looking_agent(Path(folder), arguments.library)
        assert agent.process is not None
        try:
            time.sleep(6.0)
            pids = family(agent.process.pid)
            before_s, began_s = cpu_s(pids), time.monotonic()
            time.sleep(arguments.rest_s)
            share = (cpu_s(pids) - before_s) / (time.monotonic() - began_s)
            parts = f"agent and {len(pids) - 1} children"
            yield Measured(name="at rest", value=100 * share, limit=0.5, unit="% of a core", remark=parts)
            pss = sum(memory_mb(pid, "Pss") for pid in pids)
            yield Measured(name="memory", value=pss, limit=60, unit="MB PSS", remark=parts)
            rss = [memory_mb(pid, "Rss") for pid in pids]
            remark = f"{parts}; the agent alone {rss[0]:.0f}; pages that they share count in each"
            yield Measured(name="memory, summed", value=sum(rss), limit=float("inf"), unit="MB RSS", remark=remark)
            answers = [answered_s(agent) for _ in range(20)]
            yield Measured(name="status, by the socket", value=statistics.median(answers), limit=0.1, unit="s")
            programs = statistics.median(program_s(agent) for _ in range(5))
            remark = "with the start of Python"
            yield Measured(name="status, as a program", value=programs, limit=float("inf"), unit="s", remark=remark)
        finally:
            agent.kill()


def answered_s(agent: RunningAgent) -> float:
    began_s = time.monotonic()
    assert agent.status_or_none()
    return time.monotonic() - began_s


def program_s(agent: RunningAgent) -> float:
    command, began_s = agent.command("status", "--json"), time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False, env=agent.environment)
    return time.monotonic() - began_s


def latency(arguments: argparse.Namespace) -> Iterator[Measured]:
    with tempfile.TemporaryDirectory() as folder:
        agent = looking_agent(Path(folder), arguments.library)
        try:
            seconds = []
            for number in range(20):
                text = f"NVRM: Xid (PCI:{number:04x}:05:00): 31, pid={number}, name=python, MMU Fault"
                before, began_s = agent.events.stat().st_size, time.monotonic()
                agent.say(text)
                until(lambda size=before: agent.events.stat().st_size > size)  # type: ignore[misc]
                seconds.append(time.monotonic() - began_s)
                time.sleep(0.1)
            remark = f"median of 20, worst {max(seconds):.2f}; a file, which is looked at 5 times a second"
            median = statistics.median(seconds)
            yield Measured(name="kernel line to verdict", value=median, limit=0.5, unit="s", remark=remark)
        finally:
            agent.kill()


def has_verdict(agent: RunningAgent, fault: str) -> bool:
    return any(event["fault"] == fault for event in agent.told("verdict"))


def mount(arguments: argparse.Namespace) -> Iterator[Measured]:
    if os.geteuid() != 0:
        return
    with tempfile.TemporaryDirectory() as folder:
        place, behind = Path(folder) / "fsx", Path(folder) / "behind"
        behind.mkdir()
        agent = looking_agent(Path(folder), None)
        agent.kill()
        subprocess.run(["mount", "--bind", str(behind), str(place)], check=True)
        try:
            seconds = []
            for _ in range(arguments.repeat):
                agent.start()
                until(lambda: (place / "x").exists() or support(agent, "mounts") == "supported")
                time.sleep(3.3)
                with standing_still("freeze", place):
                    began_s, size = time.monotonic(), len(agent.told("verdict"))
                    until(lambda before=size: len(agent.told("verdict")) > before)  # type: ignore[misc]
                    seconds.append(time.monotonic() - began_s)
                    answer_s = answered_s(agent)
                until(lambda: agent.status_or_none()["incidents"] == [])
                agent.end()
            remark = f"median of {len(seconds)}, worst {max(seconds):.1f}; status meanwhile {answer_s:.3f} s"
            median = statistics.median(seconds)
            yield Measured(name="stalled mount to verdict", value=median, limit=10, unit="s", remark=remark)
        finally:
            agent.kill()
            subprocess.run(["umount", "-l", str(place)], check=True)


def driver(arguments: argparse.Namespace) -> Iterator[Measured]:
    if os.geteuid() != 0 or arguments.library is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        agent = looking_agent(Path(folder), arguments.library)
        gate = Path(folder) / "gate"
        gate.touch()
        try:
            with standing_still("hold", gate):
                answers_of(arguments.library).write_text(f"count=8\ndevice={gate}\n")
                began_s = time.monotonic()
                until(lambda: has_verdict(agent, "driver-hung"))
                took_s, answer_s = time.monotonic() - began_s, answered_s(agent)
                by_program_s = program_s(agent)
                answers_of(arguments.library).write_text("count=8\n")
            remark = f"status meanwhile {answer_s:.3f} s, as a program {by_program_s:.2f} s"
            yield Measured(name="hung driver to verdict", value=took_s, limit=15, unit="s", remark=remark)
            yield Measured(name="status while the driver hangs", value=answer_s, limit=0.1, unit="s")
            until(lambda: agent.status_or_none()["incidents"] == [])
        finally:
            agent.kill()


def support(agent: RunningAgent, name: str) -> str:
    return str({one["name"]: one["support"] for one in agent.status_or_none()["detectors"]}[name])


PARTS = {"lines": lines, "rest": rest, "latency": latency, "mount": mount, "driver": driver}


def built_library(folder: Path) -> Path | None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not STAND_IN.exists():
        return None
    library = folder / "libnvidia-ml.so.1"
    answers = f'-DANSWERS="{answers_of(library)}"'
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-w", answers, "-o", library, STAND_IN], check=True)
    return library


def answers_of(library: Path) -> Path:
    return library.with_name("answers")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--rest-s", type=float, default=30.0, help="how long an agent at rest is watched")
    parser.add_argument("--repeat", type=int, default=3, help="of the stalled mount")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        arguments.library = built_library(Path(folder))
        measured = [(one, os.getloadavg()[0]) for name in arguments.only for one in PARTS[name](arguments)]
    if arguments.json:
        print(json.dumps([{**vars(one), "holds": one.holds, "load": load} for one, load in measured], default=str))
    else:
        table = Table("what", "measured", "limit", "load", "")
        for one, load in measured:
            limit = "" if one.limit == float("inf") else f"{one.limit:,.10g}"
            value = f"{one.value:,.0f}" if one.value >= 1000 else f"{one.value:.3g}"
            table.add_row(
                one.name, f"{value} {one.unit}", limit + ("" if one.holds else " missed"), f"{load:.1f}", one.remark
            )
        Console(width=160).print(table)
    return 0 if all(one.holds for one, _ in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
