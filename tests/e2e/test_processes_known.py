"""
The list of processes against a running cluster: nothing of the system runs that it does not have, and each of its
processes is noticed in its time when it is killed and when it stands still.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.localcloud import LocalCloud
from holdfast.localcloud.nodes import Fleet, Node
from holdfast.localcloud.nodes.kernel import proc
from holdfast.localcloud.roster import EVERY, Place, SystemProcess, at

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(3600)]

SLOW = 4.0
"""How much later things may come on a busy machine."""
BACK_WITHIN_S = 60.0
HELPERS = (b"systemctl",)
"""Beside those named ``unit:`` they supervise a process of the list, or what a user's unit starts."""
UNDER_SLURM = (Place.MACHINE, Place.NODE, Place.CONTROLLER, Place.COMPUTE)
WITHOUT_NODES_LOSS = [one for one in EVERY if one.place in UNDER_SLURM and one.name not in ("sh", "monitor")]
"""PID 1 of a node is a node's loss, which the tests of healing have; a monitor is there only when it is asked for."""


@dataclass(frozen=True)
class Running:
    """A process of the list as it runs."""

    process: SystemProcess
    pid: int
    ticks: int
    node: str = ""


def eventually(holds: Callable[[], Any], what: str, *, within_s: float) -> Any:
    deadline = time.monotonic() + SLOW * within_s
    while not (found := holds()):
        assert time.monotonic() < deadline, f"{what}: not within {SLOW * within_s:g} s"
        time.sleep(0.25)
    return found


def places(product: Any) -> dict[str, Place]:
    """The kind of each node; the embedded AWS answers once it has restored its state."""
    done = eventually(lambda: answered(product.run("status", "--json", check=False)), "status", within_s=BACK_WITHIN_S)
    nodes = json.loads(done.stdout)["nodes"]
    return {
        one["instance_id"]: Place.CONTROLLER if one["instance_group"] == "controller" else Place.COMPUTE
        for one in nodes
    }


def answered(done: Any) -> Any:
    return done if done.returncode == 0 else None


def is_of(process: SystemProcess, pid: int) -> bool:
    line = proc.command_line(pid)
    return proc.program(pid) in process.shown and (not process.marks or any(mark in line for mark in process.marks))


def on_node(node: Node, place: Place) -> Iterator[Running]:
    """Processes of the list on a node; of several of one kind the parent."""
    members = proc.members(node.pid)
    for process in at(place):
        own = {pid for pid in members if is_of(process, pid)}
        for pid in own:
            ticks = proc.start_ticks(pid)
            if proc.parent(pid) not in own and ticks is not None:
                yield Running(process, pid, ticks, node.spec.instance_id)


def of_the_system(product: Any) -> list[Running]:
    kinds = places(product)
    return [running for place in UNDER_SLURM for running in of_place(product, place, kinds=kinds)]


def of_place(product: Any, place: Place, *, kinds: dict[str, Place]) -> Iterator[Running]:
    """Processes of the list that run at a place; ``kinds``: of each node."""
    if place is Place.MACHINE:
        for state in LocalCloud(home=product.home, port=product.port).processes():
            process = next(one for one in at(Place.MACHINE) if one.name == state.name)
            yield Running(process, state.pid, proc.start_ticks(state.pid) or 0)
        return
    for node in Fleet(home=product.home).nodes():
        kind = kinds.get(node.spec.instance_id)
        if kind is not None:
            yield from (one for one in on_node(node, kind) if one.process.place is place)


def events(product: Any, *kinds: str) -> list[dict[str, Any]]:
    done = product.run("events", "--json", check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()] if done.returncode == 0 else []
    return [event for event in told if event["kind"] in kinds]


def problem(product: Any) -> str:
    done = product.run("status", "--json", check=False)
    return str(json.loads(done.stdout)["problem"]) if done.returncode == 0 else str(done.stderr)


def noticed(product: Any, one: Running, before: int, *, kinds: dict[str, Place]) -> bool:
    if one.process.place is Place.MACHINE:
        shown = problem(product)
        return one.process.what in shown or f"process {one.process.name} failed" in shown
    return again(product, one, kinds=kinds) or told_of(product, one) > before


def told_of(product: Any, one: Running) -> int:
    return sum(event["node"] == one.node for event in events(product, "daemon_lost", "agent_started"))


def runs(one: Running) -> bool:
    return proc.alive(pid=one.pid, ticks=one.ticks)


def strike(product: Any, one: Running, sign: signal.Signals, *, kinds: dict[str, Place]) -> None:
    before = told_of(product, one)
    struck = time.monotonic()
    os.kill(one.pid, sign)
    name = f"{one.process.name} of {one.node or 'this machine'}"
    eventually(
        lambda: noticed(product, one, before, kinds=kinds),
        f"{name} after {sign.name} is noticed",
        within_s=one.process.noticed_within_s,
    )
    noticed_s = time.monotonic() - struck
    if one.process.place is Place.MACHINE and sign is signal.SIGSTOP:
        product.run("up", "local")  # which lets it go on
    elif sign is signal.SIGSTOP and not one.process.ends_when_stopped:
        os.kill(one.pid, signal.SIGCONT)
    eventually(lambda: again(product, one, kinds=kinds), f"{name} after {sign.name} runs", within_s=BACK_WITHIN_S)
    print(f"{name}: {sign.name}: noticed after {noticed_s:.1f} s, runs after {time.monotonic() - struck:.1f} s")


def again(product: Any, one: Running, *, kinds: dict[str, Place]) -> bool:
    """It runs, and not as the process that was killed: one that its unit has healed is noticed, too."""
    now = of_place(product, one.process.place, kinds=kinds)
    same = [other for other in now if (other.process, other.node) == (one.process, one.node)]
    return any(runs(other) and proc.state(other.pid) not in ("T", "t") for other in same)


def advances(product: Any, job: str) -> None:
    def step() -> int:
        return max((one["detail"]["step"] for one in events(product, "job_progress") if one["job"] == job), default=0)

    before = step()
    eventually(lambda: step() > before, "the job makes steps", within_s=60.0)


def submitted(product: Any) -> str:
    example = Path(__file__).parents[2] / "examples/bytelm"
    command = ["submit", str(example / "bytelm.sbatch"), "--prepare", str(example / "prepare.py"), "--json"]
    told = product.run(*command, "--", "--steps", "1000000")
    return str(json.loads(told.stdout[told.stdout.index("{") :])["job_id"])


def test_every_process_of_an_idle_cluster_is_on_the_list_or_belongs_to_one_that_is(product: Any) -> None:
    product.run("up", "local")
    known = {one.pid for one in of_the_system(product)}
    assert {one.process for one in of_the_system(product)} >= set(WITHOUT_NODES_LOSS)
    strangers = []
    for node in Fleet(home=product.home).nodes():
        for pid in proc.members(node.pid):
            line = proc.command_line(pid)
            ancestors = {pid, *_ancestors(pid, until=node.pid)}
            program = proc.program(pid)
            is_helper = any(mark in line for mark in HELPERS) or program.startswith(("sleep", "unit:")) or not line
            if not ancestors & (known - {node.pid}) and pid != node.pid and not is_helper:
                strangers.append((node.spec.hostname, program, line))
    assert strangers == []


def _ancestors(pid: int, *, until: int) -> Iterator[int]:
    while (pid := proc.parent(pid)) not in (0, 1, until):
        yield pid


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSTOP], ids=lambda sign: sign.name)
def test_each_process_of_the_list_is_noticed_in_its_time_under_a_job_that_goes_on(
    product: Any, sign: signal.Signals
) -> None:
    product.run("up", "local")
    job = submitted(product)
    advances(product, job)
    kinds = places(product)
    for process in WITHOUT_NODES_LOSS:
        if sign is signal.SIGSTOP and process.name == "slurmd":
            continue  # Slurm gives its node up, as tests/e2e/test_processes_die.py has it
        one = next(found for found in of_place(product, process.place, kinds=kinds) if found.process == process)
        strike(product, one, sign, kinds=kinds)
        advances(product, job)
    assert places(product) == kinds
    assert [event for event in events(product, "job_resumed") if event["job"] == job] == []
