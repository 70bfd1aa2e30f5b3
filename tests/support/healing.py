"""A local cluster whose agents act, under a job that trains all the time: what the closed loop is tried on."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.localcloud.nodes import Fleet, Node

AGENT = "holdfast-agent"
Found = dict[str, Any]
ROUTINE = ("job_progress", "checkpoint_saved", "file_exported")


class Limits(NamedTuple):
    """Seconds that one loop may take. A verdict counts from the first sign of the fault, all else from its begin."""

    notice_s: float
    """Until there is a sign: a file system or a driver is silent for a while before anybody may say so."""
    verdict_s: float = 1.0
    training_s: float = 5.0
    spare_s: float = 30.0
    burn_in_s: float = 5.0


class Cluster:
    """The command line of one home, and what its events tell."""

    def __init__(self, product: Any) -> None:
        self.product = product

    def up(self, environment: str | Path = "local", *, steps: int) -> None:
        """Deploy it, and let ByteLM train until somebody ends it."""
        self.product.run("up", str(environment))
        job = ("examples/bytelm/bytelm-resilient.sbatch", "--prepare", "examples/bytelm/prepare.py")
        self.product.run("submit", *job, "--", "--steps", str(steps), "--checkpoint-every", "200")
        self.until(lambda: self.kinds("job_progress"), what="a job that trains", within_s=180)

    def run(self, *arguments: str) -> str:
        return str(self.product.run(*arguments).stdout)

    def events(self, *, since_ns: int = 0) -> list[Found]:
        lines = self.run("events", "--json").splitlines()
        found = (json.loads(line) for line in lines if line.startswith("{"))
        return sorted((one for one in found if one["time_ns"] > since_ns), key=lambda one: int(one["time_ns"]))

    def kinds(self, kind: str, *, since_ns: int = 0, node: str = "") -> list[Found]:
        found = self.events(since_ns=since_ns)
        return [one for one in found if one["kind"] == kind and node in ("", one.get("node"))]

    def incidents(self, *, since_ns: int = 0) -> list[Found]:
        found: list[Found] = json.loads(self.run("incidents", "--json"))
        return [one for one in found if one["started_ns"] >= since_ns]

    def incident_of(self, node: str, *, since_ns: int) -> Found | None:
        return next((one for one in self.incidents(since_ns=since_ns) if one["node"] == node), None)

    def busy(self) -> list[str]:
        """Nodes that have ranks, by instance id, in the order of ranks."""
        for event in reversed(self.events()):
            if event["kind"] in ("job_started", "job_resumed") and event["detail"].get("nodes"):
                return str(event["detail"]["nodes"]).split(",")
        raise AssertionError("no job runs")

    def spare(self) -> str:
        """The worker that has no rank, by instance id."""
        controller, busy = self.controller().spec.instance_id, self.busy()
        (found,) = [
            node.spec.instance_id
            for node in Fleet(home=self.product.home).nodes()
            if node.alive() and node.spec.instance_id not in (controller, *busy)
        ]
        return found

    def node(self, instance_id: str) -> Node:
        return Fleet(home=self.product.home).node(instance_id)

    def instances(self) -> set[str]:
        return {node.spec.instance_id for node in Fleet(home=self.product.home).nodes()}

    def controller(self) -> Node:
        fleet = Fleet(home=self.product.home)
        for node in fleet.nodes():
            if node.inside("/var/spool/slurmctld").exists() or node.run(["pidof", "slurmctld"], timeout_s=10).stdout:
                return node
        raise AssertionError("no controller")

    def shell(self, instance_id: str, script: str, *, timeout_s: float = 30.0) -> str:
        done = self.node(instance_id).run(["/bin/sh", "-c", script], timeout_s=timeout_s)
        assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
        return done.stdout

    def until(self, holds: Callable[[], Any], *, what: str, within_s: float, every_s: float = 0.5) -> Any:
        deadline = time.monotonic() + within_s
        while not (found := holds()):
            assert time.monotonic() < deadline, f"not seen within {within_s:g} s: {what}\n{self.told()}"
            time.sleep(every_s)
        return found

    def told(self) -> str:
        """The latest events, for whoever reads why something was not seen."""
        wanted = ("time_ns", "source", "node", "kind", "fault", "action", "evidence", "detail")
        events = [one for one in self.events() if one["kind"] not in ROUTINE][-60:]
        lines = [json.dumps({name: one.get(name) for name in wanted if one.get(name)}) for one in events]
        return "\n".join(lines)

    def loop(self, node: str, fault: str, *options: str, within_s: float = 300.0) -> Found:
        """Plant it, and see the cluster at full strength again."""
        began_ns = time.time_ns()
        self.run("inject", node, fault, *options)
        return self.healed(node, since_ns=began_ns, within_s=within_s)

    def healed(self, node: str, *, since_ns: int, within_s: float = 300.0) -> Found:
        """The incident of a node, once it is over and the job has its spare."""

        def strong() -> Found | None:
            found = self.incident_of(node, since_ns=since_ns)
            return found if found and found["at_strength_s"] is not None else None

        found: Found = self.until(strong, what=f"full strength after the incident of {node}", within_s=within_s)
        return found


def figures(found: Found) -> str:
    """One line for the report."""
    signal_s = found["signal_s"] or 0.0
    verdict_s, training_s = found["verdict_s"] or 0.0, found["training_again_s"] or 0.0
    return (
        f"{found['fault']}: first sign {signal_s:.2f} s, verdict {verdict_s - signal_s:.2f} s later, training again "
        f"{training_s - verdict_s:.2f} s after it, repaired {found['replaced_s']:.1f} s, full strength "
        f"{found['at_strength_s']:.1f} s; {found['steps_lost']} steps lost, {found['steps_redone']} done again "
        f"(load {os.getloadavg()[0]:.0f} on {os.cpu_count()})"
    )


def too_late(found: Found, limits: Limits) -> list[str]:
    """What took longer than it may; nothing counts twice. Who has too few processors for the load has longer."""
    slower = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    signal_s, verdict_s = found["signal_s"] or 0.0, found["verdict_s"] or 0.0
    taken = {
        "the first sign": (signal_s, limits.notice_s),
        "the verdict": (verdict_s - signal_s, limits.verdict_s),
        "training again": ((found["training_again_s"] or 0.0) - verdict_s, limits.training_s),
        "full strength": (found["at_strength_s"] - verdict_s, limits.spare_s + limits.burn_in_s),
    }
    return [
        f"{what} took {took:.2f} s, at most {most:g} s, {slower:.1f} times as long at this load"
        for what, (took, most) in taken.items()
        if took > most * slower
    ]


def untouched(cluster: Cluster, *, planted: Sequence[str]) -> list[str]:
    """Healthy nodes of which anything was asked; none ever is."""
    asked = {one["node"] for one in cluster.kinds("remedy_requested")}
    taken = {one["node"] for one in cluster.events() if one["kind"] in ("node_replacing", "node_rebooting")}
    return sorted((asked | taken) - set(planted))


def interrupted(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Ctrl-C, as a terminal sends it; the exit code, and what it said."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, (out + err).strip()
