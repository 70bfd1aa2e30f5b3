"""
Survival of a job's allocation after the loss of a node.

Slurm keeps it as ``kill_on_node_fail`` and reports it nowhere, so it follows from what the job was submitted with. Both
the job and its step need ``--no-kill`` (sbatch(1): the option of the job does not set SLURM_NO_KILL for its steps).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from holdfast_runtime.launcher.allocation.options import (
    no_kill_of,
    no_kill_of_environment,
    no_kill_of_script,
    no_kill_of_sruns,
    split,
)

Answer = Literal["yes", "no", "not known"]
OF_THE_JOB, OF_THE_STEP = "#SBATCH --no-kill", "srun --no-kill"


@dataclass(frozen=True, kw_only=True)
class SubmittedJob:
    """Job, and step of this launcher, as submitted. None for what is not known."""

    environment: Mapping[str, str]
    script: str | None = None
    """The job file, as ``scontrol write batch_script`` prints it."""
    job_line: str | None = None
    """The command that made the allocation."""
    step_line: str | None = None
    """The command that made the step."""
    batch_host: str = ""
    """The node that runs the job file."""


@dataclass(frozen=True, kw_only=True)
class Survival:
    """Answer, and missing options."""

    answer: Answer
    add: tuple[str, ...] = ()
    """Options that make it a yes."""
    batch_host: str = ""

    @property
    def sentence(self) -> str:
        what = f"this allocation survives the loss of a node: {self.answer}"
        if self.answer == "yes":
            return what + (f", except of {self.batch_host}, which runs the job file" if self.batch_host else "")
        add = " and ".join(self.add)
        if self.answer == "no":
            return f"{what}: Slurm ends it with its first lost node, and all steps since the last checkpoint; add {add}"
        return f"{what}: Slurm does not report it; it does with {add}"


def survival(submitted: SubmittedJob) -> Survival:
    job, step = _of_the_job(submitted), _of_the_step(submitted)
    add = tuple(option for option, has in ((OF_THE_JOB, job), (OF_THE_STEP, step)) if has is not True)
    if job and step:
        return Survival(answer="yes", batch_host=submitted.batch_host)
    if job is False or step is False:
        return Survival(answer="no", add=add)
    return Survival(answer="not known", add=add)


def _of_the_job(submitted: SubmittedJob) -> bool | None:
    """A command line wins over the environment, and that over the job file (sbatch(1), "INPUT ENVIRONMENT")."""
    line = split(submitted.job_line) if submitted.job_line is not None else None
    if line is not None and (found := no_kill_of(line[1:])) is not None:
        return found
    program = line[0].rpartition("/")[2] if line else ("sbatch" if submitted.script is not None else "")
    variable = {"sbatch": "SBATCH_NO_KILL", "salloc": "SALLOC_NO_KILL", "srun": "SLURM_NO_KILL"}.get(program, "")
    if (found := no_kill_of_environment(variable, submitted.environment)) is not None:
        return found
    if submitted.script is not None and (found := no_kill_of_script(submitted.script)) is not None:
        return found
    return False if line is not None and (program != "sbatch" or submitted.script is not None) else None


def _of_the_step(submitted: SubmittedJob) -> bool | None:
    line = split(submitted.step_line)[1:] if submitted.step_line is not None else None
    if line is not None and (found := no_kill_of(line)) is not None:
        return found
    if (found := no_kill_of_environment("SLURM_NO_KILL", submitted.environment)) is not None:
        return found
    if line is not None:
        return False
    return no_kill_of_sruns(submitted.script) if submitted.script is not None else None
