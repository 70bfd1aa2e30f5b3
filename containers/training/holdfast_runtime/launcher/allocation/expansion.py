"""
A node in place of one that the allocation has lost: requested with Slurm's job expansion, joins as the spare.

Slurm merges a job that was submitted with ``--dependency=expand:JOB`` into that one when its size is set to 0
(https://slurm.schedmd.com/faq.html#job_size; ``SchedulerParameters=permit_job_expansion``, which HyperPod sets). It
refuses where the job holds GRES, as each with ``--exclusive`` on nodes with GPUs does, and leaves the other one in
COMPLETING for ever (seen with 22.05). There the launcher of the node is a batch job of its own, and ends it.

A node that its ranks have left stays in the allocation, and Slurm's state FAIL, by which HyperPod replaces it, waits
for its jobs. The leader takes it out (same FAQ: ``scontrol update JobId=JOB NodeList=OTHERS``).
"""

import asyncio
import contextlib
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast_runtime.launcher.allocation.slurm import JobRecord, read_job
from holdfast_runtime.launcher.links import Links
from holdfast_runtime.launcher.ranks import LocalSlots

VARIABLE = "HOLDFAST_SPARE"
LINE = f"export {VARIABLE}=expand"
"""Line of a job file before ``srun``, to get lost nodes back."""
WITHOUT = f"no spare until the job ends; a job with the line '{LINE}' before srun gets the node back"
LOOK_S = 3.0
"""Between two looks at whether Slurm has taken the lost node from the job: until then it would not miss one."""
END_S = 10.0
COMMAND_S = 60.0
"""For a command that slurmctld answers at once; salloc waits for a node as long as the job runs."""
_KEPT = ("SLURM_CONF",)
_FAILING = re.compile(r"\bState=\S*FAIL")
_MOST_S = 60.0
_MOST_DOUBLINGS = 5
_BATCH = """#!/bin/sh
# In the run of job {job}, whose folders and events it has; without that job there is none.
[ -n "$(squeue -h -j {job} -t RUNNING)" ] || exit 0
exec srun {step} env -u SLURM_JOB_START_TIME SLURM_JOB_ID={job} HOLDFAST_ALLOCATION={job} {command}
"""


class ExpansionError(Exception):
    """Slurm gives no node."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """Options of this launcher, to start another one in the same run."""

    job: str = ""
    """Whose allocation it is; empty where there is none to expand."""
    is_asked: bool = False
    nodes: int = 1
    hosts: tuple[str, ...] = ()
    """Slurm's names of the nodes; fewer than nodes where they are not known."""
    run_id: str = ""
    port: int = 0
    arguments: tuple[str, ...] = ()
    """Options of this launcher as it was started."""
    program: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """Replacement of lost nodes: expand, none, or empty if Slurm or Kubernetes restarts them."""
        return ("expand" if self.is_asked else "none") if self.job else ""


class Expansion:
    """
    One launcher's part; only the leader does anything.

    Args:
        token: Of the run; the environment carries it to the other launcher.
        host: Where other launchers find this one.
    """

    def __init__(
        self,
        request: Request,
        *,
        token: str,
        slots: LocalSlots,
        links: Links,
        host: str,
        leads: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> None:
        self._request = request
        self._token = token
        self._slots = slots
        self._links = links
        self._host = host
        self._leads = leads
        self._hosts = dict(enumerate(request.hosts))
        self._tell = tell
        self._looking: asyncio.Task[None] | None = None
        self._brought: dict[int, asyncio.Task[None]] = {}
        self._steps: set[asyncio.subprocess.Process] = set()
        self._pending = ""
        """The job that waits for a node."""
        self._reported = ""
        self._joined: set[int] = set()
        """Nodes that a view has had: one that starts late is not lost."""
        self._failed = 0
        """Launchers in a row that ended before they joined."""
        self._closed = False

    @property
    def lost(self) -> list[int]:
        view = self._slots.view
        return [node for node, name in enumerate(view.nodes) if name < 0] if view.generation else []

    def installed(self) -> None:
        self._joined |= {node for node, name in enumerate(self._slots.view.nodes) if name >= 0}
        if self._closed or not self._request.job or not self.lost or not self._leads():
            return
        if not self._request.is_asked:
            if self._joined.intersection(self.lost):
                self._tell_once(WITHOUT)
        elif self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        self._closed = True
        tasks = [*self._brought.values()]
        if self._steps:
            await asyncio.wait(tasks, timeout=END_S)
        for child in self._steps:
            with contextlib.suppress(ProcessLookupError):
                child.terminate()
        if self._looking is not None:
            tasks.append(self._looking)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._pending:
            await self._withdraw(self._pending)

    async def _look(self) -> None:
        pause_s = pause_after(self._failed)
        if self._failed:
            await asyncio.sleep(pause_s)
        while self._leads():
            missing = [node for node in self.lost if node not in self._brought]
            if not missing:
                return
            try:
                pause_s = LOOK_S if await self._bring(missing) else min(2 * pause_s, _MOST_S)
            except (ExpansionError, OSError, ValueError) as error:
                self._tell_once(f"node {missing[0]}: no replacement: {error}")
                pause_s = _MOST_S
            await asyncio.sleep(pause_s)

    async def _bring(self, missing: Sequence[int]) -> bool:
        """Return False where Slurm has not missed a node, or the one in its place is there."""
        job, node = self._request.job, missing[0]
        for left in missing:
            await self._release(left)
        record = await self._record()
        name = f"holdfast-spare-{job}"
        others = (await self._run(["squeue", "-h", "-n", name, "-o", "%i %T"])).split("\n")
        if record.nodes + sum(line.endswith(" RUNNING") for line in others) >= self._request.nodes:
            return False
        for line in others:  # asked for by a launcher that is gone
            if line.endswith(" PENDING"):
                await self._run(["scancel", line.split()[0]])
        self._tell_once(f"node {node}: lost, requested another one as the spare (job expansion)")
        way = self._beside if record.holds_gres else self._merged
        host, ending = await way(node, record, name)
        if not self._failed:
            self._tell(f"node {node}: replaced by {host}, joins as the spare")
        self._hosts[node] = host
        self._joined.discard(node)
        self._brought[node] = asyncio.get_running_loop().create_task(self._until(node, ending))
        return True

    async def _release(self, node: int) -> None:
        """Take a node out of the allocation whose launcher has ended and which Slurm is to give up."""
        host = self._hosts.get(node)
        if host is None or node in self._links.up:
            return
        if not _FAILING.search(await self._run(["scontrol", "--oneliner", "show", "node", host])):
            return
        record = await self._record()
        hosts = (await self._run(["scontrol", "show", "hostnames", record.node_list])).split()
        if host not in hosts:
            return
        if host == record.batch_host:
            raise ExpansionError(f"{host} runs the job file, so Slurm gives it up when the job ends")
        others = ",".join(name for name in hosts if name != host)
        with tempfile.TemporaryDirectory() as folder:  # scontrol writes scripts for the job's shell where it runs
            await self._run(["scontrol", "update", f"JobId={self._request.job}", f"NodeList={others}"], folder=folder)

    async def _record(self) -> JobRecord:
        return read_job(await self._run(["scontrol", "--oneliner", "show", "job", self._request.job]))

    async def _merged(self, node: int, record: JobRecord, name: str) -> tuple[str, Coroutine[None, None, None]]:
        job = self._request.job
        salloc = ["salloc", "--no-shell", f"--dependency=expand:{job}", *like(record, name=name)]
        printed = await self._run(salloc, has_deadline=False)
        found = re.search(r"Granted job allocation (\d+)", printed)
        if found is None:
            raise ExpansionError("salloc has granted no allocation")
        try:
            host = (await self._run(["squeue", "-h", "-j", found[1], "-o", "%N"])).strip()
            await self._run(["scontrol", "update", f"JobId={found[1]}", "NumNodes=0"])
        except (ExpansionError, OSError, asyncio.CancelledError):
            await self._withdraw(found[1])
            raise
        step = ["srun", f"--jobid={job}", f"--nodelist={host}", *step_options(record)]
        return host, self._step([*step, *launcher(self._request, node=node, address=(self._host, self._links.port))])

    async def _withdraw(self, job: str) -> None:
        with contextlib.suppress(ExpansionError, OSError):
            await self._run(["scancel", job])

    async def _beside(self, node: int, record: JobRecord, name: str) -> tuple[str, Coroutine[None, None, None]]:
        script = _BATCH.format(
            job=self._request.job,
            step=shlex.join(step_options(record)),
            command=shlex.join(launcher(self._request, node=node, address=(self._host, self._links.port))),
        )
        output = [f"--output={record.output}", "--open-mode=append"] if record.output else []
        command = ["sbatch", "--parsable", "--no-requeue", f"--chdir={Path.cwd()}", *output, *like(record, name=name)]
        extra = (await self._run(command, given=script)).strip().partition(";")[0]
        self._pending = extra
        while not (found := re.match(r"RUNNING (\S+)", state := await self._state(extra))):
            if not state:
                raise ExpansionError(f"job {extra}, which was to bring it, has ended")
            await asyncio.sleep(LOOK_S)
        self._pending = ""
        return found[1], self._batch(extra)

    async def _state(self, job: str) -> str:
        try:
            return (await self._run(["squeue", "-h", "-j", job, "-o", "%T %N"])).strip()
        except ExpansionError:  # slurmctld has forgotten it
            return ""

    async def _batch(self, job: str) -> None:
        while await self._state(job):
            await asyncio.sleep(_MOST_S)

    async def _step(self, command: Sequence[str]) -> None:
        child = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, env={**without_slurm(os.environ), **self._variables}
        )
        self._steps.add(child)
        try:
            await child.wait()
        finally:
            self._steps.discard(child)

    async def _until(self, node: int, ending: Coroutine[None, None, None]) -> None:
        try:
            await ending
        finally:
            self._brought.pop(node, None)
            self._failed = 0 if node in self._joined else self._failed + 1
            if self._failed == 1 and not self._closed:
                self._tell(f"node {node}: its launcher ended before it joined; trying again, with growing pauses")
            self.installed()

    @property
    def _variables(self) -> dict[str, str]:
        return {"HOLDFAST_ALLOCATION": self._request.job, "HOLDFAST_TOKEN": self._token}

    async def _run(
        self, command: Sequence[str], *, given: str = "", has_deadline: bool = True, folder: str | None = None
    ) -> str:
        """Return both outputs of a command. Raises ExpansionError, also at its deadline, and OSError."""
        within_s = COMMAND_S if has_deadline else None
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=folder,
            env={**without_slurm(os.environ), **self._variables},
        )
        try:
            printed = (await asyncio.wait_for(child.communicate(given.encode()), within_s))[0].decode(errors="replace")
        except asyncio.TimeoutError as error:
            raise ExpansionError(f"{command[0]}: no answer within {within_s} s") from error
        finally:
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    child.terminate()  # salloc withdraws its request
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(child.communicate(), END_S)
        if child.returncode:
            raise ExpansionError(f"{command[0]}: {printed.strip() or f'exit code {child.returncode}'}")
        return printed

    def _tell_once(self, text: str) -> None:
        if text != self._reported:
            self._reported = text
            self._tell(text)


def pause_after(failed: int) -> float:
    """Seconds after so many launchers in a row that ended before they joined."""
    return min(LOOK_S * 2.0 ** min(failed, _MOST_DOUBLINGS), _MOST_S)


def like(record: JobRecord, *, name: str) -> list[str]:
    """Options for a node as those of the job, and none of them: without --exclusive Slurm would share one."""
    given = (("partition", record.partition), ("account", record.account), ("qos", record.qos), ("gres", record.gres))
    options = ["--nodes=1", "--ntasks=1", f"--job-name={name}"]
    options += [f"--{option}={value}" for option, value in given if value]
    options += [f"--exclude={record.node_list}"] if record.node_list else []
    return [*options, "--exclusive" if record.is_exclusive else f"--cpus-per-task={record.cpus_per_node}"]


def step_options(record: JobRecord) -> list[str]:
    return ["--no-kill", "--nodes=1", "--ntasks=1", f"--cpus-per-task={record.cpus_per_node}"]


def launcher(request: Request, *, node: int, address: tuple[str, int]) -> list[str]:
    place = ["--nnodes", str(request.nodes), "--node-rank", str(node), "--rdzv-endpoint", f"{address[0]}:{address[1]}"]
    place += ["--rdzv-id", request.run_id, "--port", str(request.port)]
    return [sys.executable, "-m", "holdfast_runtime.launcher", *request.arguments, *place, *request.program]


def without_slurm(environment: Mapping[str, str]) -> dict[str, str]:
    ours = ("SLURM_", "SBATCH_")
    return {name: value for name, value in environment.items() if name in _KEPT or not name.startswith(ours)}
