"""
A node in place of one that the allocation has lost: requested with Slurm's job expansion, joins as the spare.

Slurm merges a job that was submitted with ``--dependency=expand:JOB`` into that one when its size is set to 0
(https://slurm.schedmd.com/faq.html#job_size; ``SchedulerParameters=permit_job_expansion``, which HyperPod sets). It
refuses where the job holds GRES, as each with ``--exclusive`` on nodes with GPUs does, and leaves the other one in
COMPLETING for ever (seen with 22.05). There the node stays with its own job, which ends with the launcher.
"""

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast_runtime.launcher.allocation.slurm import JobRecord, read_job
from holdfast_runtime.membership import View

VARIABLE = "HOLDFAST_SPARE"
LINE = f"export {VARIABLE}=expand"
"""What a job file says before ``srun`` to get lost nodes back."""
WITHOUT = f"no spare until the job ends; a job with the line '{LINE}' before srun gets the node back"
LOOK_S = 3.0
"""Between two looks at whether Slurm has taken the lost node from the job: until then it would not miss one."""
END_S = 10.0
_KEPT = ("SLURM_CONF",)
_ENDS_ITS_JOB = 'own=$SLURM_JOB_ID; unset SLURM_JOB_START_TIME; SLURM_JOB_ID=$0 "$@"; scancel "$own"'
"""Runs a launcher as one of job ``$0``, whose folders and events it has, in a job of its own that ends with it."""


class ExpansionError(Exception):
    """Slurm gives no node."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What has to be known of this launcher to start another one in the same run."""

    job: str = ""
    """Whose allocation it is; empty where there is none to expand."""
    is_asked: bool = False
    nodes: int = 1
    run_id: str = ""
    port: int = 0
    arguments: tuple[str, ...] = ()
    """Options of this launcher as it was started."""
    program: tuple[str, ...] = ()


class Expansion:
    """
    One launcher's part; only the leader does anything.

    Args:
        token: Of the run; the environment carries it to the other launcher.
        leads: Whether this launcher is the leader.
        address: Where this launcher listens.
        tell: Writes into the log of the job.
    """

    def __init__(
        self,
        request: Request,
        *,
        token: str,
        view: Callable[[], View],
        leads: Callable[[], bool],
        address: Callable[[], tuple[str, int]],
        tell: Callable[[str], None],
    ) -> None:
        self._request = request
        self._token = token
        self._view = view
        self._leads = leads
        self._address = address
        self._tell = tell
        self._looking: asyncio.Task[None] | None = None
        self._brought: dict[int, asyncio.Task[None]] = {}
        self._children: set[asyncio.subprocess.Process] = set()
        self._said = ""
        self._closed = False

    @property
    def answer(self) -> str:
        """How this job gets a lost node back: expand, none, or empty where Slurm or Kubernetes starts it again."""
        return ("expand" if self._request.is_asked else "none") if self._request.job else ""

    @property
    def lost(self) -> list[int]:
        """Nodes that the view has not."""
        view = self._view()
        return [node for node, name in enumerate(view.nodes) if name < 0] if view.epoch else []

    def installed(self) -> None:
        """There is another view."""
        if self._closed or not self._request.job or not self.lost or not self._leads():
            return
        if not self._request.is_asked:
            self._tell_once(WITHOUT)
        elif self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """The launcher ends: what waits for a node is withdrawn, and launchers that were brought have their time."""
        self._closed = True
        tasks = [*self._brought.values()]
        if self._looking is not None:
            self._looking.cancel()
            tasks.append(self._looking)
        if tasks:
            await asyncio.wait(tasks, timeout=END_S)
        for child in self._children:
            with contextlib.suppress(ProcessLookupError):
                child.terminate()

    async def _look(self) -> None:
        while self._leads():
            missing = [node for node in self.lost if node not in self._brought]
            if not missing:
                return
            try:
                await self._bring(missing[0])
            except (ExpansionError, OSError, ValueError) as error:
                self._tell_once(f"no spare in place of node {missing[0]}: {error}")
            await asyncio.sleep(LOOK_S)

    async def _bring(self, node: int) -> None:
        job = self._request.job
        record = read_job(await self._run(["scontrol", "--oneliner", "show", "job", job]))
        name = f"holdfast-spare-{job}"
        others = (await self._run(["squeue", "-h", "-n", name, "-o", "%i %T"])).split("\n")
        beside = [line for line in others if line.endswith(" RUNNING")]
        if record.nodes + len(beside) >= self._request.nodes:
            return  # Slurm has not missed the node yet
        for line in others:  # asked for by a launcher that is gone
            if line.endswith(" PENDING"):
                await self._run(["scancel", line.split()[0]])
        self._tell_once(f"node {node} is lost: requested another one as the spare (job expansion)")
        found = re.search(r"Granted job allocation (\d+)", await self._run(allocate(record, job=job, name=name)))
        if found is None:
            raise ExpansionError("salloc has granted no allocation")
        extra = found[1]
        try:
            host = (await self._run(["squeue", "-h", "-j", extra, "-o", "%N"])).strip()
            if not record.holds_gres:
                await self._run(["scontrol", "update", f"JobId={extra}", "NumNodes=0"])
        except (ExpansionError, asyncio.CancelledError):
            await self._run(["scancel", extra])
            raise
        command = start(
            self._request,
            node=node,
            host=host,
            job=extra if record.holds_gres else job,
            merged=not record.holds_gres,
            cpus=max(1, record.cpus // max(1, record.nodes)),
            address=self._address(),
        )
        self._tell(f"node {node} is {host} now, and joins as the spare")
        self._brought[node] = asyncio.get_running_loop().create_task(self._until_it_ends(node, command))

    async def _until_it_ends(self, node: int, command: Sequence[str]) -> None:
        token = {"HOLDFAST_TOKEN": self._token, "HOLDFAST_ALLOCATION": self._request.job}
        child = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, env={**without_slurm(os.environ), **token}
        )
        self._children.add(child)
        try:
            await child.wait()
        finally:
            self._children.discard(child)
            self._brought.pop(node, None)
            self.installed()

    async def _run(self, command: Sequence[str]) -> str:
        """What a command prints on both outputs. Raises ExpansionError, OSError."""
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=without_slurm(os.environ),
            cwd="/",
        )
        self._children.add(child)
        try:
            printed = (await child.communicate())[0].decode(errors="replace")
        except asyncio.CancelledError:
            child.terminate()  # salloc withdraws its request
            raise
        finally:
            self._children.discard(child)
        if child.returncode:
            raise ExpansionError(f"{command[0]}: {printed.strip() or f'exit code {child.returncode}'}")
        return printed

    def _tell_once(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._tell(text)


def allocate(record: JobRecord, *, job: str, name: str) -> list[str]:
    """The command that waits for one more node like those of the job."""
    command = ["salloc", "--no-shell", "--nodes=1", "--ntasks=1", f"--job-name={name}", f"--dependency=expand:{job}"]
    given = (("partition", record.partition), ("account", record.account), ("qos", record.qos))
    command += [f"--{option}={value}" for option, value in given if value]
    cpus = max(1, record.cpus // max(1, record.nodes))
    return command + (["--exclusive"] if record.is_exclusive else [f"--cpus-per-task={cpus}"])


def start(
    request: Request, *, node: int, host: str, job: str, merged: bool, cpus: int, address: tuple[str, int]
) -> list[str]:
    """The command that starts the launcher of a node, in a step of its own."""
    step = ["srun", f"--jobid={job}", "--no-kill", "--nodes=1", "--ntasks=1", f"--cpus-per-task={cpus}"]
    place = ["--nnodes", str(request.nodes), "--node-rank", str(node), "--rdzv-endpoint", f"{address[0]}:{address[1]}"]
    place += ["--rdzv-id", request.run_id, "--port", str(request.port)]
    launcher = [sys.executable, "-m", "holdfast_runtime.launcher", *request.arguments, *place, *request.program]
    ending = [] if merged else ["sh", "-c", _ENDS_ITS_JOB, request.job]
    return [*step, f"--nodelist={host}", *ending, *launcher]


def without_slurm(environment: Mapping[str, str]) -> dict[str, str]:
    """What a command of another step gets: with the variables of this one srun would repeat its layout."""
    ours = ("SLURM_", "SBATCH_")
    return {name: value for name, value in environment.items() if name in _KEPT or not name.startswith(ours)}
