"""
Daemons of single nodes: those of the boot, and Slurm's.

The controller uses its systemctl. On compute nodes a shell starts the units' programs and writes systemctl's records,
at a third of the work.
"""

import shlex
import subprocess

from holdfast.localcloud.hyperpod.slurm.configuration import FOLDER, GRES_CONF, SLURM_CONF, TOPOLOGY_CONF
from holdfast.localcloud.hyperpod.slurm.topology import topology_conf
from holdfast.localcloud.image import NO_ACCOUNTING, START_ENABLED
from holdfast.localcloud.nodes import Node, ProgramQuery, census

FORM_TIMEOUT_S = 40.0
COMMAND_TIMEOUT_S = 15.0

# A file for slurm.conf's include; Slurm does not start without it.
_WRITE = f"""set -eu
[ -s {FOLDER}/accounting.conf ] || printf %s {shlex.quote(NO_ACCOUNTING)} > {FOLDER}/accounting.conf
put() {{
    cat > $1.new
    chmod 644 $1.new
    mv $1.new $1
}}
printf %s "$1" | put {GRES_CONF}
if [ -n "$2" ]; then printf %s "$2" | put {TOPOLOGY_CONF}; else rm -f {TOPOLOGY_CONF}; fi
put {SLURM_CONF}
"""

_START_CONTROLLER = """set -eu
fail() { tail -n 5 /var/log/slurm/slurmctld.log >&2 || true; echo "slurmctld did not start" >&2; exit 1; }
systemctl enable --now slurmctld >/dev/null 2>&1 || { systemctl status --no-pager slurmctld >&2 || true; fail; }
tries=0
until scontrol ping 2>/dev/null | grep -q UP; do
    tries=$((tries + 1))
    [ $tries -lt 40 ] || systemctl is-active --quiet slurmctld || fail
    sleep 0.05
done
"""

# Slurm 22.05 takes new nodes at a start only. HyperPod's newer Slurm does with "scontrol reconfigure".
_RESTART_CONTROLLER = """set -eu
systemctl restart slurmctld
until scontrol ping 2>/dev/null | grep -q UP; do sleep 0.05; done
scontrol reconfigure
"""

_RECORD = """
units=/run/holdfast/units
record() { # UNIT PID
    printf '{"active": "active", "sub": "running", "main_pid": %s, "exec_main_pid": %s}' "$2" "$2" > $units/$1.json
}
begin() { # UNIT PROGRAM...
    unit=$1.service; shift
    setsid "$@" </dev/null >>/var/log/holdfast/units/$unit.log 2>&1 &
    record $unit $!
}
"""

_IMAGE_UNITS = ("containerd", "dlami-nvme", "docker", "kubelet", "munge", "ssh")
"""Enabled in the image: started below, or when the node joins Kubernetes."""
_SLURM_UNITS = ("mariadb", "slurmctld", "slurmd", "slurmdbd")

# What the image has enabled, as systemd starts it at a boot. What a stand-in does not need a process for has none.
_BOOT = f"""set -eu
{_RECORD}
for unit in docker containerd dlami-nvme; do
    # Where Kubernetes is real, containerd is too, and begins after the lifecycle scripts.
    [ $unit != containerd ] || [ ! -e /etc/eks/kubelet/environment ] || continue
    [ ! -e /usr/lib/systemd/system/$unit.service ] ||
        printf '{{"active": "active", "sub": "exited", "main_pid": 0}}' > $units/$unit.service.json
done
[ ! -x /usr/sbin/sshd ] || begin ssh setpriv --no-new-privs -- /usr/sbin/sshd -D
if [ -e /etc/munge/munge.key ]; then
    # It goes into the background when it answers.
    setpriv --reuid munge --regid munge --init-groups munged --num-threads=2 --force >/dev/null ||
        {{ echo "munge did not start" >&2; exit 1; }}
    read -r pid < /run/munge/munged.pid
    record munge.service $pid
fi
# What lifecycle scripts have enabled, on a node that boots again. A new one has none of it, and no Python is started.
for link in /etc/systemd/system/*.wants/*; do
    case " $* " in *" ${{link##*/}} "*) continue ;; esac
    setsid {START_ENABLED} "$@" </dev/null >>/var/log/holdfast/units/boot.log 2>&1 &
    break
done
"""

_START_COMPUTE = f"""set -eu
{_RECORD}
printf 'SLURMD_OPTIONS="--conf-server %s"\\n' "$1" > /etc/default/slurmd
ln -sf ../slurmd.service /etc/systemd/system/multi-user.target.wants/slurmd.service
begin slurmd /opt/slurm/sbin/slurmd -D -s -b --conf-server "$1"
# Slurm's commands work here once it has fetched the configuration; scripts that follow use them.
tries=0
until [ -e /var/spool/slurmd/conf-cache/slurm.conf ]; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || {{ cat /var/log/holdfast/units/slurmd.service.log >&2
        echo "slurmd did not start" >&2; exit 1; }}
    sleep 0.1
done
"""

# Where somebody else has started slurmd, as lifecycle scripts do, it may be waiting for its line in slurm.conf.
_REVIVE_COMPUTE = """systemctl is-active --quiet slurmd || systemctl restart slurmd"""


class SlurmError(Exception):
    """A Slurm operation failed; the message holds its last output."""


def write_configuration(node: Node, *, conf: str, gres: str = "") -> None:
    """Write slurm.conf, gres.conf, and the topology.conf of its nodes: Slurm gives no job to one without a switch."""
    _script(node, _WRITE, gres, topology_conf(conf), text=conf, timeout_s=COMMAND_TIMEOUT_S)


def start_controller(node: Node) -> None:
    """Start slurmctld and its dependencies; return when it answers."""
    _script(node, _START_CONTROLLER, timeout_s=FORM_TIMEOUT_S)


def restart_controller(node: Node) -> None:
    """Apply a new configuration to slurmctld and all nodes. Jobs go on."""
    _script(node, _RESTART_CONTROLLER, timeout_s=FORM_TIMEOUT_S)


def controller_answers(node: Node) -> bool:
    try:
        return "UP" in node.run(["scontrol", "ping"], timeout_s=COMMAND_TIMEOUT_S).stdout
    except (OSError, subprocess.SubprocessError):
        return False


def controller_runs(node: Node) -> bool:
    running = census([node], sought=[ProgramQuery(name="slurmctld")]).get(node.spec.instance_id, {})
    return running.get("slurmctld", "T") not in "Tt"


def boot(node: Node, *, starts_slurm: bool) -> None:
    """
    Start MUNGE, sshd and the units that the node's lifecycle enabled.

    Args:
        starts_slurm: Slurm's daemons and the database are started by Slurm's configuration instead.
    """
    left = [*_IMAGE_UNITS, *(_SLURM_UNITS if starts_slurm else ())]
    arguments = [f"{name}.service" for name in left]
    _script(node, _BOOT, *arguments, what="AMI-based configuration of", timeout_s=FORM_TIMEOUT_S)


def start_compute(node: Node, *, controller_address: str) -> None:
    _script(node, _START_COMPUTE, f"{controller_address}:6817", timeout_s=FORM_TIMEOUT_S)


def revive_compute(node: Node) -> None:
    """Start slurmd if it has exited, as it does when the controller has no line for it."""
    _script(node, _REVIVE_COMPUTE, timeout_s=COMMAND_TIMEOUT_S * 2)


def is_enabled(node: Node, unit: str) -> bool:
    try:
        return node.run(["systemctl", "is-enabled", "--quiet", unit], timeout_s=COMMAND_TIMEOUT_S).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _script(
    node: Node, script: str, *arguments: str, what: str = "starting Slurm on", text: str = "", timeout_s: float
) -> None:
    try:
        done = node.run(["/bin/sh", "-c", script, "holdfast", *arguments], timeout_s=timeout_s, input=text)
    except subprocess.TimeoutExpired:
        raise SlurmError(f"{what} {node.spec.hostname} timed out after {timeout_s:g} s") from None
    if done.returncode:
        raise SlurmError(f"{what} {node.spec.hostname} failed with exit code {done.returncode}: {last_words(done)}")


def last_words(done: "subprocess.CompletedProcess[str]") -> str:
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return " | ".join(lines)[-500:]
