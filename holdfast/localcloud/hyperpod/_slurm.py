"""
Slurm on the nodes of one cluster: daemons started, nodes drained, resumed and watched, all from outside the nodes.

What the configuration says is ``_slurm_conf``'s; when to call what is the control loop's.
"""

import logging
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from holdfast.localcloud.hyperpod._batch import Batcher
from holdfast.localcloud.hyperpod._slurm_conf import STARTING_REASON, node_names
from holdfast.localcloud.nodes import Node, NodeError

FORM_TIMEOUT_S = 40.0
COMMAND_TIMEOUT_S = 15.0
REGISTER_TIMEOUT_S = 30.0
SNAPSHOT_AGE_S = 0.1

MARKS = {"Action:Replace": "replace", "Action:Reboot": "reboot"}
"""HyperPod's documented reasons, which ask for what they say."""

_REASON = re.compile(r" Reason=(.*?)(?: \[[^\]]*\])?(?: Comment=.*)?$")

_log = logging.getLogger(__name__)

_MUNGE = """
mkdir -p /var/log/slurm /var/spool/slurmd /etc/slurm
[ -S /run/munge/munge.socket.2 ] && kill -0 "$(cat /run/munge/munged.pid)" 2>/dev/null ||
    setpriv --reuid munge --regid munge --init-groups munged --num-threads=2 --force >/dev/null 2>&1
"""

# Not where a node is older than its plugin: a required one that is not there stops every srun.
_PLUGINS = """
plugin=${1#required }
[ -n "$1" ] && [ ! -e "${plugin%% *}" ] || printf '%s' "$1" > /etc/slurm/plugstack.conf
"""

_FORM = f"""set -eu
conf=/etc/slurm/slurm.conf
running() {{ [ -s /run/slurmctld.pid ] && kill -0 "$(cat /run/slurmctld.pid)" 2>/dev/null; }}
{_MUNGE}
mkdir -p /var/spool/slurmctld
# Without it slurmd looks for a mounted cgroup hierarchy, which nodes have none of and these plugins need none of.
echo CgroupPlugin=cgroup/v1 > /etc/slurm/cgroup.conf
{_PLUGINS}
cat > $conf.new
if running && cmp -s $conf.new $conf; then rm $conf.new; exit 0; fi
mv $conf.new $conf
again=
if running; then
    again=1; pid=$(cat /run/slurmctld.pid); kill "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
fi
slurmctld >/run/slurmctld.out 2>&1 </dev/null || {{ cat /run/slurmctld.out >&2; exit 1; }}
tries=0
until scontrol ping 2>/dev/null | grep -q UP; do
    tries=$((tries + 1))
    [ $tries -lt 40 ] || running || {{ tail -n 5 /var/log/slurm/slurmctld.log >&2; exit 1; }}
    sleep 0.05
done
[ -z "$again" ] || scontrol reconfigure
"""

# -b: report "booted now". Otherwise slurmd reports the uptime of the whole machine, and Slurm believes no reboot.
_COMPUTE = f"""set -eu
{_MUNGE}
[ -s /run/slurmd.pid ] && kill -0 "$(cat /run/slurmd.pid)" 2>/dev/null && exit 0
tries=0
until slurmd -b --conf-server "$1" -N "$2" >/run/slurmd.out 2>&1 </dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 20 ] || {{ tail -n 5 /var/log/slurm/slurmd.log /run/slurmd.out >&2; exit 1; }}
    sleep 0.25
done
"""


class SlurmError(Exception):
    """Slurm could not be brought to do it; the message holds its last words."""


@dataclass(frozen=True, kw_only=True)
class NodeState:
    """A node as Slurm's controller sees it."""

    base: str
    """IDLE, MIXED, ALLOCATED, DOWN, UNKNOWN ..."""
    flags: frozenset[str] = frozenset()
    """DRAIN, FAIL, NOT_RESPONDING, COMPLETING ..."""
    reason: str = ""
    booted: bool = True
    """Its slurmd has registered since the controller started or the node was set down."""

    @property
    def registered(self) -> bool:
        return self.booted and self.base in ("IDLE", "MIXED", "ALLOCATED") and "NOT_RESPONDING" not in self.flags

    @property
    def usable(self) -> bool:
        return self.registered and not self.flags & {"DRAIN", "FAIL"}

    @property
    def mark(self) -> str:
        """What the node's reason asks for, once no job is on it any more; empty when nothing."""
        freed = self.base in ("IDLE", "DOWN") and "COMPLETING" not in self.flags
        if freed and (self.base == "DOWN" or self.flags & {"DRAIN", "FAIL"}) and self.reason in MARKS:
            return MARKS[self.reason]
        # Slurm's own verdict after SlurmdTimeout, on an instance whose init process is alive.
        silent = self.base == "DOWN" and "NOT_RESPONDING" in self.flags and self.reason == "Not responding"
        return "unresponsive" if silent else ""


class Slurm:
    """
    Slurm of one cluster. Thread-safe.

    Args:
        plugstack: plugstack.conf; configless Slurm hands it on with the rest. Default: no plugins.
    """

    def __init__(self, *, plugstack: str = "") -> None:
        self._plugstack = plugstack
        self._controller: Node | None = None
        self._conf = ""
        self._formed = threading.Condition()
        self._updates = Batcher(self._update_all)
        self._snapshot_lock = threading.Lock()
        self._snapshot: dict[str, NodeState] = {}
        self._snapshot_at = 0.0

    @property
    def conf(self) -> str:
        """The configuration in force; empty when there is none."""
        controller = self._controller
        return self._conf if controller is not None and controller.alive() else ""

    def form(self, *, controller: Node, conf: str, start_drained: Iterable[str]) -> None:
        """
        Make ``conf`` the cluster's configuration. Running jobs go on.

        Nodes that are new in it are drained if they are among ``start_drained``, so that no job starts on them early.
        """
        before = node_names(self.conf)
        if not before:
            before = node_names(_read(controller, "/etc/slurm/slurm.conf"))
        _script(controller, _FORM, self._plugstack, text=conf, timeout_s=FORM_TIMEOUT_S)
        self._controller, self._conf = controller, conf
        new = sorted((node_names(conf) - before) & set(start_drained))
        if new:
            self._scontrol(f"NodeName={','.join(new)}", "State=DRAIN", f"Reason={STARTING_REASON}")
        with self._formed:
            self._formed.notify_all()

    def wait_formed(self, *, host_name: str = "", timeout_s: float = FORM_TIMEOUT_S) -> None:
        """Return when Slurm answers and knows ``host_name``; raises SlurmError after ``timeout_s``."""
        with self._formed:
            if not self._formed.wait_for(
                lambda: bool(self.conf) and (not host_name or host_name in node_names(self.conf)), timeout_s
            ):
                raise SlurmError(
                    f"Slurm's controller was not ready for {host_name or 'this node'} within {timeout_s:g} s"
                )

    def start_compute(self, *, node: Node, controller_address: str) -> None:
        """Start slurmd, which fetches the configuration from the controller."""
        _script(node, _COMPUTE, f"{controller_address}:6817", node.spec.hostname, timeout_s=COMMAND_TIMEOUT_S * 2)

    def start_login(self, *, node: Node) -> None:
        """Give a login node what Slurm's commands need."""
        script = f"set -eu\n{_MUNGE}{_PLUGINS}\ncat > /etc/slurm/slurm.conf"
        _script(node, script, self._plugstack, text=self._conf, timeout_s=COMMAND_TIMEOUT_S)

    def join(self, host_name: str) -> None:
        """Let jobs on a node; returns when Slurm would start one. Raises SlurmError when the node does not answer."""
        self._wait(host_name, lambda state: state.registered)
        self._updates.submit((host_name, "State=RESUME"))
        self._wait(host_name, lambda state: state.usable)

    def _wait(
        self, host_name: str, holds: Callable[[NodeState], bool], *, timeout_s: float = REGISTER_TIMEOUT_S
    ) -> None:
        deadline = time.monotonic() + timeout_s
        while True:
            state = self.states(max_age_s=SNAPSHOT_AGE_S).get(host_name)
            if state is not None and holds(state):
                return
            if time.monotonic() > deadline:
                shown = "+".join([state.base, *sorted(state.flags)]) if state else "unknown to Slurm"
                raise SlurmError(f"slurmd of {host_name} did not register within {timeout_s:g} s: its node is {shown}")
            time.sleep(SNAPSHOT_AGE_S)

    def drain(self, host_name: str) -> None:
        """Let no job start on a node while its lifecycle scripts run."""
        self._updates.submit((host_name, "State=DRAIN", f"Reason={STARTING_REASON}"))

    def down(self, host_name: str, *, reason: str) -> None:
        """Take a lost node out at once: its jobs are requeued now, not after SlurmdTimeout. Best effort."""
        try:
            self._updates.submit((host_name, "State=DOWN", f"Reason={reason}"))
        except (SlurmError, NodeError, OSError, subprocess.TimeoutExpired) as error:
            _log.warning("Slurm was not told that %s is down: %s", host_name, error)

    def states(self, *, max_age_s: float = 0.0) -> Mapping[str, NodeState]:
        """Every Slurm node's state, by host name; at most ``max_age_s`` old. Empty when Slurm does not answer."""
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
            self._snapshot, self._snapshot_at = parse_nodes(answer.stdout), time.monotonic()
            return self._snapshot

    def _update_all(self, updates: list[tuple[str, ...]]) -> None:
        hosts: dict[tuple[str, ...], list[str]] = {}
        for host_name, *rest in updates:
            hosts.setdefault(tuple(rest), []).append(host_name)
        for fields, names in hosts.items():
            self._scontrol(f"NodeName={','.join(names)}", *fields)

    def _scontrol(self, *fields: str) -> None:
        controller = self._controller
        if controller is None:
            raise SlurmError("Slurm has no controller yet")
        answer = controller.run(["scontrol", "update", *fields], timeout_s=COMMAND_TIMEOUT_S)
        if answer.returncode:
            raise SlurmError(f"scontrol update {' '.join(fields)}: {(answer.stderr or answer.stdout).strip()}")


def parse_nodes(text: str) -> dict[str, NodeState]:
    """Output of ``scontrol --oneliner show node``."""
    found = {}
    for line in text.splitlines():
        fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "NodeName" not in fields or "State" not in fields:
            continue
        base, *flags = fields["State"].split("+")
        reason = _REASON.search(line)
        found[fields["NodeName"]] = NodeState(
            base=base.rstrip("*"),
            flags=frozenset([*flags, *(["NOT_RESPONDING"] if base.endswith("*") else [])]),
            reason=reason[1] if reason else "",
            booted=fields.get("BootTime") != "None",
        )
    return found


def _read(node: Node, path: str) -> str:
    try:
        return node.read_file(path).decode()
    except OSError:
        return ""


def _script(node: Node, script: str, *arguments: str, text: str = "", timeout_s: float) -> None:
    try:
        done = node.run(["/bin/sh", "-c", script, "holdfast", *arguments], timeout_s=timeout_s, input=text)
    except subprocess.TimeoutExpired:
        raise SlurmError(f"starting Slurm on {node.spec.hostname} took more than {timeout_s:g} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-500:]
        raise SlurmError(f"starting Slurm on {node.spec.hostname} failed with exit code {done.returncode}: {said}")
