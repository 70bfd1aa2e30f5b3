"""
How fast nodes become a Slurm cluster: from nothing to every node idle, and back to nothing.

    sudo python benchmarks/boot.py            # 6 and 64 nodes
    sudo python benchmarks/boot.py 6 17 --repeat 3

Each run boots virtual instances, forms Slurm on them with the control plane's own code (one controller, the rest
compute nodes), waits until the controller reports each node idle, runs one job step on all of them, destroys
everything and looks for leftovers. No lifecycle scripts run and no AWS is asked. Exit status 1 when a limit is
missed or something is left behind.
"""

import argparse
import contextlib
import os
import secrets
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from holdfast.localcloud.hyperpod.lifecycle import hosts
from holdfast.localcloud.hyperpod.model import Cluster, Group, Instance
from holdfast.localcloud.hyperpod.slurm import MachineSize, Slurm, slurm_conf, start_compute
from holdfast.localcloud.nodes import FileSpec, Fleet, NodeSpec

LIMITS_S = {6: 3.0, 64: 8.0}
IDLE_TIMEOUT_S = 60.0
THREADS = 8


@dataclass(frozen=True, kw_only=True)
class Run:
    """One measurement; seconds from nothing to all nodes booted, and to all idle."""

    nodes: int
    boot_s: float
    idle_s: float
    srun_s: float
    teardown_s: float
    memory_mib: float
    leftovers: tuple[str, ...]


def described_cluster(count: int) -> Cluster:
    instances = [
        Instance(
            instance_id=f"i-{number:017x}",
            group="workers" if number else "controller",
            address=f"10.1.{number // 200}.{number % 200 + 10}",
        )
        for number in range(count)
    ]
    groups = (
        Group(name="controller", instance_type="ml.m5.xlarge", slurm_role="Controller"),
        Group(name="workers", instance_type="ml.p5.48xlarge", slurm_role="Compute"),
    )
    arn = "arn:aws:sagemaker:us-west-2:123456789012:cluster/benchmark"
    return Cluster(arn=arn, name="benchmark", status="Creating", groups=groups, instances=tuple(instances))


class Benchmark:
    def __init__(self, *, home: Path, count: int) -> None:
        self.fleet = Fleet(home=home)
        self.cluster = described_cluster(count)
        self.slurm = Slurm()
        key = FileSpec(content=secrets.token_bytes(128), mode=0o400, owner="munge:munge")
        self.files = {
            "/etc/munge/munge.key": key,
            "/etc/hosts": FileSpec(content=hosts(self.cluster).encode()),
        }
        self.booted_at: list[float] = []

    def up(self) -> None:
        self.fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(self._one, self.cluster.instances))
        self._wait_idle()

    def _one(self, instance: Instance) -> None:
        node = self.fleet.boot(
            NodeSpec(
                instance_id=instance.instance_id,
                hostname=instance.host_name,
                address=instance.address,
                files=self.files,
            )
        )
        self.booted_at.append(time.monotonic())
        if instance.group == "controller":
            conf = slurm_conf(self.cluster, machine=MachineSize(cpus=os.cpu_count() or 1, memory_mib=1024))
            self.slurm.form(controller=node, conf=conf, before_start=lambda _: None)
        else:
            self.slurm.wait_formed()
            start_compute(node, controller_address=self.cluster.instances[0].address)

    def _wait_idle(self) -> None:
        deadline = time.monotonic() + IDLE_TIMEOUT_S
        expected = len(self.cluster.instances) - 1
        while sum(state.usable and state.base == "IDLE" for state in self.slurm.states().values()) < expected:
            if time.monotonic() > deadline:
                sys.exit(f"not idle after {IDLE_TIMEOUT_S:g} s: {dict(self.slurm.states())}")
            time.sleep(0.02)

    def run_everywhere(self) -> None:
        expected = {one.host_name for one in self.cluster.with_role("Compute")}
        controller = self.fleet.node(self.cluster.instances[0].instance_id)
        done = controller.run(["srun", f"--nodes={len(expected)}", "hostname"], timeout_s=IDLE_TIMEOUT_S)
        if set(done.stdout.split()) != expected:
            sys.exit(f"srun reached {len(set(done.stdout.split()))} of {len(expected)} nodes: {done.stderr.strip()}")


def users(home: Path) -> list[Path]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process is gone
            if process.name != str(os.getpid()) and f"upperdir={home}/nodes/" in (process / "mountinfo").read_text():
                found.append(process)
    return found


def memory_mib(home: Path) -> float:
    used = sum(os.statvfs(home / "nodes")[i] * sign for i, sign in ((2, 1), (3, -1))) * os.statvfs(home).f_frsize
    for process in users(home):
        with contextlib.suppress(OSError):
            rollup = (process / "smaps_rollup").read_text()
            used += sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))
    return used / 2**20


def leftovers(home: Path) -> tuple[str, ...]:
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(home) in line]
    return (*map(str, home.rglob("*")), *mounts, *map(str, users(home)))


def measure(count: int) -> Run:
    with tempfile.TemporaryDirectory(prefix="holdfast-boot-") as directory:
        home = Path(directory).resolve()
        benchmark = Benchmark(home=home, count=count)
        start = time.monotonic()
        try:
            benchmark.up()
            idle = time.monotonic()
            benchmark.run_everywhere()
            ran = time.monotonic()
            memory = memory_mib(home)
        finally:
            down = time.monotonic()
            benchmark.fleet.close()
        return Run(
            nodes=count,
            boot_s=max(benchmark.booted_at) - start,
            idle_s=idle - start,
            srun_s=ran - idle,
            teardown_s=time.monotonic() - down,
            memory_mib=memory,
            leftovers=leftovers(home),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description="Seconds from nothing to an idle Slurm cluster of virtual instances.")
    parser.add_argument("nodes", nargs="*", type=int, default=[6, 64], help="sizes, controller included")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each size")
    given = parser.parse_args()
    if problems := Fleet.check_host():
        sys.exit("; ".join(problems))
    runs = [measure(count) for count in given.nodes for _ in range(given.repeat)]
    table = Table("nodes", "booted s", "idle s", "limit s", "ratio", "srun s", "down s", "MiB each", "left")
    for run in runs:
        limit = LIMITS_S.get(run.nodes)
        ratio = f"{run.idle_s / limit:.2f}" if limit else "-"
        timings = [f"{run.boot_s:.2f}", f"{run.idle_s:.2f}", str(limit or "-"), ratio, f"{run.srun_s:.2f}"]
        rest = [f"{run.teardown_s:.2f}", f"{run.memory_mib / run.nodes:.1f}", str(len(run.leftovers))]
        table.add_row(str(run.nodes), *timings, *rest)
    Console().print(table)
    for run in runs:
        for thing in run.leftovers:
            print(f"left behind: {thing}", file=sys.stderr)
    missed = any(run.idle_s > LIMITS_S.get(run.nodes, IDLE_TIMEOUT_S) or run.leftovers for run in runs)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
