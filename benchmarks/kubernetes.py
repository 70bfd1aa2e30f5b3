"""
What a local cluster under EKS costs: `holdfast up local-eks`, its memory, its idle time, and `holdfast down`.

    sudo python benchmarks/kubernetes.py
    sudo python benchmarks/kubernetes.py --idle-s 60 --environment environments/local-eks.yaml

A local cloud in a temporary folder, on a free port. Seconds to ready nodes count from the start of etcd to the moment
when the last Node became Ready, as the API server remembers it, to the second. CPU time is that of etcd, the components
of Kubernetes, containerd, its shims and what they started and waited for. Exit status 1 when a limit is missed or
something is left behind.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from holdfast.cli.deployed import locate, sign_in

ROOT = Path(__file__).parents[1]
HOLDFAST = str(Path(sys.executable).parent / "holdfast")
PROGRAMS = ("etcd", "hyperkube", "containerd", "containerd-shim-runc-v2", "holdfast-stand-ins")
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
READY_WITHIN_S, CPU_LIMIT_S, IDLE_LIMIT, DOWN_LIMIT_S = 30.0, 25.0, 0.25, 3.0
CONTROL_PLANE_MIB, NODE_MIB = 450.0, 50.0
TICKS = os.sysconf("SC_CLK_TCK")
SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
)


@dataclass(frozen=True, kw_only=True)
class Process:
    pid: int
    component: str
    cpu_s: float
    pss_mib: float
    started_s: float
    """Since the machine's start."""


@dataclass(frozen=True, kw_only=True)
class Row:
    what: str
    value: float
    limit: float | None
    unit: str

    @property
    def holds(self) -> bool:
        return self.limit is None or self.value <= self.limit


def processes(home: Path) -> list[Process]:
    return [found for entry in Path("/proc").glob("[0-9]*") if (found := _process(entry, home)) is not None]


def _process(entry: Path, home: Path) -> Process | None:
    try:
        program = (entry / "exe").readlink().name
        if program not in PROGRAMS or str(home) not in (entry / "mountinfo").read_text():
            return None
        words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
        pss = next(line for line in (entry / "smaps_rollup").read_text().splitlines() if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return None
    component = words[1] if program == "hyperkube" else program
    ticks = sum(int(fields[place]) for place in range(11, 15))  # its own and its children's, user and system
    started = int(fields[19]) / TICKS
    return Process(
        pid=int(entry.name),
        component=component,
        cpu_s=ticks / TICKS,
        pss_mib=int(pss.split()[1]) / 1024,
        started_s=started,
    )


def measure(*, environment: str, home: Path, idle_s: float) -> Iterator[Row]:
    began = time.monotonic()
    _holdfast("up", environment)
    yield Row(what="holdfast up", value=time.monotonic() - began, limit=None, unit="s")
    now_s, uptime_s = time.time(), float(Path("/proc/uptime").read_text().split()[0])
    there = processes(home)
    first = min(one.started_s for one in there if one.component == "etcd")
    nodes = sign_in(locate()).client.items("/api/v1/nodes")
    ready = [stamp for node in nodes for stamp in _ready_since(node)]
    assert len(ready) == len(nodes), "a node is not ready"
    yield Row(
        what=f"{len(nodes)} nodes ready", value=max(ready) - (now_s - uptime_s + first), limit=READY_WITHIN_S, unit="s"
    )
    yield Row(what="CPU until up returns", value=sum(one.cpu_s for one in there), limit=CPU_LIMIT_S, unit="s")
    plane = [one for one in there if one.component in CONTROL_PLANE]
    daemons = sum(one.pss_mib for one in there if one.component in ("kubelet", "containerd"))
    rest = sum(one.pss_mib for one in there) - sum(one.pss_mib for one in plane)
    yield Row(what="PSS, control plane", value=sum(one.pss_mib for one in plane), limit=CONTROL_PLANE_MIB, unit="MiB")
    yield Row(what="PSS, kubelet and containerd", value=daemons / len(nodes), limit=NODE_MIB, unit="MiB a node")
    yield Row(what="PSS, add-ons and kube-proxy", value=(rest - daemons) / len(nodes), limit=None, unit="MiB a node")
    for component in sorted({one.component for one in there}):
        same = [one for one in there if one.component == component]
        mib = sum(one.pss_mib for one in same)
        yield Row(what=f"  {component}, {len(same)} of them", value=mib, limit=None, unit="MiB")
    before = {one.pid: one.cpu_s for one in processes(home)}
    time.sleep(idle_s)
    spent = sum(one.cpu_s - before[one.pid] for one in processes(home) if one.pid in before)
    yield Row(what="idle, of one core", value=spent / idle_s, limit=IDLE_LIMIT, unit="")
    began = time.monotonic()
    _holdfast("down")
    yield Row(what="holdfast down", value=time.monotonic() - began, limit=DOWN_LIMIT_S, unit="s")


def _ready_since(node: dict[str, object]) -> Iterator[float]:
    from holdfast.cli.kubernetes import seconds

    for condition in node["status"]["conditions"]:  # type: ignore[index]
        if condition["type"] == "Ready" and condition["status"] == "True":
            yield float(seconds(condition["lastTransitionTime"]))


def _holdfast(*words: str) -> None:
    done = subprocess.run([HOLDFAST, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"holdfast {' '.join(words)}: {done.stdout}{done.stderr}")


def leftovers(home: Path, *, settings: dict[str, str]) -> list[str]:
    found = [f"process {one.pid} {one.component}" for one in processes(home)]
    found += [f"mount {line}" for line in Path("/proc/mounts").read_text().splitlines() if str(home) in line]
    found += [f"setting {name}" for name, value in machine_settings().items() if value != settings[name]]
    return found + ([f"folder {home}"] if home.exists() else [])


def machine_settings() -> dict[str, str]:
    return {name: Path("/proc/sys", name).read_text() for name in SETTINGS}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("--environment", default="local-eks")
    parser.add_argument("--idle-s", type=float, default=30.0, help="how long nothing is asked. Default: 30")
    arguments = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as free:
        home, port = Path(folder, "home"), free.getsockname()[1]
        free.close()
        os.environ |= {"HOLDFAST_HOME": str(home), "HOLDFAST_PORT": str(port)}
        settings = machine_settings()
        try:
            rows = list(measure(environment=arguments.environment, home=home, idle_s=arguments.idle_s))
        finally:
            if home.exists():
                _holdfast("down")
        left = leftovers(home, settings=settings)
    table = Table("what", "measured", "at most", "")
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:g}"
        table.add_row(row.what, f"{row.value:.2f} {row.unit}", limit, "" if row.holds else "missed")
    console.print(table)
    console.print(json.dumps({"load": os.getloadavg(), "left": left}))
    return 0 if not left and all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
