"""A Slurm of several nodes on this machine alone: its real daemons, each node a slurmd at a port of its own."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ports import free_ports
from waiting import eventually

_CONF = """\
ClusterName=bare
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/s,cred_expire=10
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/%n
MpiDefault=none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=5,bf_interval=5
ReturnToService=2
JobRequeue=1
KillWait=2
MessageTimeout=10
JobCompType=jobcomp/none
PropagateResourceLimits=NONE
{settings}
{nodes}
PartitionName=dev Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
GIVES_WAY = """\
launcher=$!
trap 'kill -TERM "$launcher"' TERM
wait "$launcher"
code=$?
if [ "$code" -gt 128 ]; then
    wait "$launcher"
    code=$?
fi
if [ "$code" -eq 75 ]; then
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
"""
"""What follows the start of a launcher in a task of an elastic job, as examples/recipes/recipe.sbatch has it."""


class BareSlurm:
    """Its commands, as root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def run(self, argv: list[str]) -> str:
        """What a command prints; raises where it fails."""
        done = subprocess.run(
            argv, env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{argv}: {done.stderr}"
        return done.stdout

    def start(self, count: int, *, plugstack: str = "", settings: str = "") -> None:
        """Munge, slurmctld, and so many nodes, with more lines of plugstack.conf and of slurm.conf."""
        folder, host = self.folder, socket.gethostname().partition(".")[0]
        for name in ("munge", "state", "log", "spool"):
            (folder / name).mkdir(parents=True)
        folder.chmod(0o755)
        (folder / "munge").chmod(0o711)
        (folder / "munge" / "key").write_bytes(os.urandom(128))
        (folder / "munge" / "key").chmod(0o400)
        port, *ports = free_ports(count + 1)
        names = [f"n{number}" for number in range(count)]
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={own} CPUs=2 RealMemory=1000 State=UNKNOWN"
            for name, own in zip(names, ports, strict=True)
        )
        (folder / "slurm.conf").write_text(
            _CONF.format(host=host, port=port, folder=folder, settings=settings, nodes=nodes)
        )
        if plugstack:
            (folder / "plugstack.conf").write_text(plugstack)
        own = [f"--{word}={folder}/munge/{name}" for word, name in (("socket", "s"), ("key-file", "key"))]
        own += [f"--{word}={folder}/munge/{word}" for word in ("pid-file", "log-file", "seed-file")]
        self.run(["munged", "--force", *own])
        self.run(["slurmctld"])
        for name in names:
            self.run(["slurmd", "-N", name])
        eventually(lambda: self.run(["sinfo", "-h", "-t", "idle", "-o", "%D"]).strip() == str(count), "idle nodes")

    def stop(self) -> None:
        """End all of it, jobs first."""
        subprocess.run(["scancel", "--partition=dev"], env=self.environment, check=False, capture_output=True)
        end = time.monotonic() + 20
        while time.monotonic() < end and self.run(["squeue", "-h"]).strip():
            time.sleep(0.5)
        pids = [int(path.read_text()) for path in self.folder.glob("*.pid")]
        pids.append(int((self.folder / "munge" / "pid-file").read_text()))
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "the end of Slurm's daemons")


@contextmanager
def bare_slurm(folder: Path, *, nodes: int, plugstack: str = "", settings: str = "") -> Iterator[BareSlurm]:
    """So many nodes, ended with the jobs that they run; paths of sockets are short, so the folder is, too."""
    slurm = BareSlurm(folder)
    try:
        slurm.start(nodes, plugstack=plugstack, settings=settings)
        yield slurm
    finally:
        slurm.stop()
        shutil.rmtree(folder / "munge")
