"""Slurm of one cluster, from outside its nodes: start daemons, drain, resume and watch nodes."""

import logging
import subprocess
import threading
import time
from collections.abc import Callable, Mapping

from holdfast.localcloud.hyperpod.slurm import daemons
from holdfast.localcloud.hyperpod.slurm.configuration import (
    SLURM_CONF,
    STARTING_REASON,
    merged,
    node_names,
    owned_lines,
)
from holdfast.localcloud.hyperpod.slurm.daemons import COMMAND_TIMEOUT_S, FORM_TIMEOUT_S, SlurmError
from holdfast.localcloud.nodes import Node, NodeError
from holdfast.localcloud.supervision import Batcher
from holdfast_common import slurm_answers

REGISTER_TIMEOUT_S = 30.0
SLOW_TIMEOUT_S = 300.0
"""For a slurmctld that runs and does not answer yet: its machine is busy, and it is not broken."""
ANSWER_POLL_S = 0.2
SNAPSHOT_AGE_S = 0.1
SNAPSHOT_AGE_PER_NODE_S = 0.006

RESERVATION = "hyperpod-deep-health-check-"
"""Prefix of a maintenance reservation's name; AWS's name is not documented."""

NOT_RESPONDING = "Not responding"
"""slurmctld's own reason for a node that is lost."""

_log = logging.getLogger(__name__)


def mark_of(node: slurm_answers.SlurmNode) -> str:
    """
    Return the request of a node's state without jobs: ``replace``, ``reboot``, ``unresponsive``, or "".

    HyperPod documents the two reasons, not their comparison: assumed that text appended by slurmctld, or a reservation,
    does not cancel a request.
    """
    freed = node.base in ("IDLE", "DOWN") and "COMPLETING" not in node.flags
    if freed and (node.base == "DOWN" or node.flags & {"DRAIN", "FAIL"}) and node.request:
        return node.request
    # Slurm's own verdict after SlurmdTimeout, on an instance whose init process is alive.
    silent = node.base == "DOWN" and node.is_lost and node.reason == NOT_RESPONDING
    return "unresponsive" if silent else ""


class Slurm:
    def __init__(self, *, form_timeout_s: float = FORM_TIMEOUT_S) -> None:
        self._form_timeout_s = form_timeout_s
        self._controller: Node | None = None
        self._conf = ""
        self._problem = ""
        self._answered: Node | None = None
        """The controller that was seen to answer."""
        self._formed = threading.Condition()
        self._updates = Batcher(self._update_all)
        self._snapshot_lock = threading.Lock()
        self._snapshot: dict[str, slurm_answers.SlurmNode] = {}
        self._snapshot_at = 0.0

    @property
    def conf(self) -> str:
        """Return the configuration in force, or ""."""
        controller = self._controller
        return self._conf if controller is not None and controller.alive() else ""

    def form(
        self,
        *,
        controller: Node,
        conf: str,
        gres: str = "",
        before_start: Callable[[Node], None] | None,
    ) -> None:
        """Apply ``conf``; jobs go on. ``before_start`` is called before slurmctld; None: scripts start it."""
        present = _read(controller, SLURM_CONF)
        changed = owned_lines(present) != owned_lines(conf)
        if changed:
            daemons.write_configuration(controller, conf=merged(present=present, desired=conf), gres=gres)
        if changed and daemons.controller_answers(controller):
            daemons.restart_controller(controller)
        elif before_start is not None:
            before_start(controller)
            daemons.start_controller(controller)
            self._answered = controller
        self._controller, self._conf = controller, conf
        self.report_formation(problem="")

    def report_formation(self, *, problem: str) -> None:
        """Report success or failure of the cluster's formation to waiting threads."""
        with self._formed:
            self._problem = problem
            self._formed.notify_all()

    def wait_formed(self, *, host_name: str = "", timeout_s: float | None = None) -> None:
        """Wait until the configuration has ``host_name``; raise SlurmError after ``timeout_s``."""
        timeout_s = self._form_timeout_s if timeout_s is None else timeout_s
        with self._formed:
            if not self._formed.wait_for(
                lambda: bool(self.conf) and (not host_name or host_name in node_names(self.conf)), timeout_s
            ):
                why = f": {self._problem}" if self._problem else ""
                raise SlurmError(
                    f"Slurm's controller was not ready for {host_name or 'this node'} within {timeout_s:g} s{why}"
                )

    def lines(self, controller: Node) -> frozenset[str]:
        """Return nodes with a line, in the configuration in force or the one of an earlier process."""
        return node_names(self.conf or _read(controller, SLURM_CONF))

    def has_node(self, host_name: str) -> bool:
        return host_name in node_names(self.conf)

    def wait_answering(
        self, *, timeout_s: float = REGISTER_TIMEOUT_S, is_given_up: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait for slurmctld; one that runs gets more time. Raise SlurmError, also during a deletion."""
        began = time.monotonic()
        while self._answered is None or self._answered is not self._controller:
            controller, waited_s = self._controller, time.monotonic() - began
            if controller is not None and daemons.controller_answers(controller):
                self._answered = controller
            elif is_given_up():
                raise SlurmError("slurmctld did not respond; its cluster is being deleted")
            elif waited_s > timeout_s and (waited_s > SLOW_TIMEOUT_S or not _runs(controller)):
                raise SlurmError(f"slurmctld did not respond within {waited_s:.0f} s")
            else:
                time.sleep(ANSWER_POLL_S)

    def join(self, host_name: str) -> None:
        """Resume a node; return when Slurm would start a job. Raise SlurmError if the node does not answer."""
        if not self._wait(host_name, lambda state: state.registered).usable:
            self._updates.submit((host_name, "State=RESUME"))
            # It counts as not responding until it has answered once more.
            self._wait(host_name, lambda state: state.usable, since=time.monotonic())

    def _wait(
        self,
        host_name: str,
        holds: Callable[[slurm_answers.SlurmNode], bool],
        *,
        since: float | None = None,
    ) -> slurm_answers.SlurmNode:
        deadline = time.monotonic() + REGISTER_TIMEOUT_S
        # Everybody asks for all nodes at once; asking often makes a large cluster slower.
        pause_s = SNAPSHOT_AGE_S + SNAPSHOT_AGE_PER_NODE_S * len(node_names(self._conf))
        while True:
            age_s = pause_s if since is None else min(pause_s, time.monotonic() - since)
            state = self.states(max_age_s=age_s).get(host_name)
            if state is not None and holds(state):
                return state
            if time.monotonic() > deadline:
                shown = state.state if state else "unknown to Slurm"
                raise SlurmError(
                    f"slurmd of {host_name} did not register within {REGISTER_TIMEOUT_S:g} s: its node is {shown}"
                )
            time.sleep(pause_s)

    def drain(self, host_name: str) -> None:
        """Drain a node of a running cluster while its lifecycle scripts run."""
        self._updates.submit((host_name, "State=DRAIN", f"Reason={STARTING_REASON}"))

    def down(self, host_name: str, *, reason: str) -> None:
        """Set a lost node DOWN: its jobs are requeued now, not after SlurmdTimeout. Best effort."""
        try:
            self._updates.submit((host_name, "State=DOWN", f"Reason={reason}"))
        except (SlurmError, NodeError, OSError, subprocess.TimeoutExpired) as error:
            _log.warning("%s: not set DOWN in Slurm: %s", host_name, error)

    def is_free(self, host_name: str) -> bool:
        """Return True if Slurm has no job on a node; also for an unknown node."""
        state = self.states().get(host_name)
        return state is None or state.free

    def jobs_on(self, host_name: str) -> str:
        """Return the ids of jobs on a node, comma-separated; empty if Slurm does not answer."""
        controller = self._controller
        if controller is None or not controller.alive():
            return ""
        argv = ["squeue", "--noheader", f"--nodelist={host_name}", "--states=RUNNING,SUSPENDED,COMPLETING", "-o", "%i"]
        try:
            answer = controller.run(argv, timeout_s=COMMAND_TIMEOUT_S)
        except (NodeError, OSError, subprocess.TimeoutExpired):
            return ""
        return ",".join(answer.stdout.split()) if answer.returncode == 0 else ""

    def reserve(self, host_name: str) -> None:
        fields = [
            f"ReservationName={RESERVATION}{host_name}", f"Nodes={host_name}", "StartTime=now", "Duration=UNLIMITED",
            "Users=root", "Flags=MAINT,IGNORE_JOBS",
        ]  # fmt: skip
        try:
            self._scontrol(*fields, verb=("create", "reservation"))
        except SlurmError as error:
            if "already exists" not in str(error) and "Duplicate" not in str(error):
                raise

    def release(self, host_name: str) -> None:
        """Remove the reservation. Best effort: a failure is logged."""
        try:
            self._scontrol(f"{RESERVATION}{host_name}", verb=("delete", "reservation"))
        except (SlurmError, NodeError, OSError, subprocess.TimeoutExpired) as error:
            _log.warning("%s: maintenance reservation not removed: %s", host_name, error)

    def states(self, *, max_age_s: float = 0.0) -> Mapping[str, slurm_answers.SlurmNode]:
        """Return every Slurm node's state by host name, at most ``max_age_s`` old; empty if Slurm does not answer."""
        asked = time.monotonic()
        with self._snapshot_lock:
            if self._snapshot_at >= asked - max_age_s and self._snapshot_at:
                return self._snapshot
            controller = self._controller
            if controller is None or not controller.alive():
                return {}
            try:
                answer = controller.run(["scontrol", "--oneliner", "show", "node"], timeout_s=COMMAND_TIMEOUT_S)
            except (NodeError, OSError, subprocess.TimeoutExpired):
                return {}
            self._snapshot = {node.name: node for node in slurm_answers.parse_nodes(answer.stdout)}
            self._snapshot_at = time.monotonic()
            return self._snapshot

    def _update_all(self, updates: list[tuple[str, ...]]) -> None:
        hosts: dict[tuple[str, ...], list[str]] = {}
        for host_name, *rest in updates:
            hosts.setdefault(tuple(rest), []).append(host_name)
        for fields, names in hosts.items():
            self._scontrol(f"NodeName={','.join(names)}", *fields)

    def _scontrol(self, *fields: str, verb: tuple[str, ...] = ("update",)) -> None:
        controller = self._controller
        if controller is None:
            raise SlurmError("Slurm has no controller yet")
        answer = controller.run(["scontrol", *verb, *fields], timeout_s=COMMAND_TIMEOUT_S)
        if answer.returncode:
            raise SlurmError(f"scontrol {' '.join([*verb, *fields])}: {(answer.stderr or answer.stdout).strip()}")


def _runs(controller: Node | None) -> bool:
    return controller is not None and daemons.controller_runs(controller)


def _read(node: Node, path: str) -> str:
    try:
        return node.read_file(path).decode()
    except OSError:
        return ""
