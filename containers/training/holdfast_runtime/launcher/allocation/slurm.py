"""Reports of Slurm's commands and of this node about a job of several nodes."""

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from holdfast_runtime.launcher.allocation.survival import SubmittedJob

ANSWER_S = 3.0
"""For each command: the first line of a job does not wait for an accounting that is down."""
_HOLDS = re.compile(r"(?:^|,)gres/")

Run = Callable[[Sequence[str]], str]
T = TypeVar("T")


def run_command(command: Sequence[str]) -> str:
    """Return the output of a command. Raises OSError and subprocess.SubprocessError."""
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=ANSWER_S, stdin=subprocess.DEVNULL
    ).stdout


def job_of(environment: Mapping[str, str]) -> str:
    """Return the job whose allocation of several nodes runs the launchers; empty for none and job arrays."""
    if given := environment.get("HOLDFAST_ALLOCATION"):
        return given
    several = int(environment.get("SLURM_JOB_NUM_NODES") or 1) > 1 and "SLURM_ARRAY_TASK_ID" not in environment
    return environment.get("SLURM_JOB_ID", "") if several and "SLURM_STEP_ID" in environment else ""


@dataclass(frozen=True, kw_only=True)
class JobRecord:
    """A running job, as ``scontrol show job`` has it."""

    nodes: int
    node_list: str
    cpus: int
    partition: str
    account: str
    qos: str
    batch_host: str
    submit_line: str | None
    is_exclusive: bool
    holds_gres: bool
    gres: str = ""
    """Of each node, where the job names it."""
    output: str = ""
    """The file that the job writes to."""

    @property
    def cpus_per_node(self) -> int:
        return max(1, self.cpus // max(1, self.nodes))


def read_job(text: str) -> JobRecord:
    """Read ``scontrol --oneliner show job``. Raises ValueError."""
    found = dict(re.findall(r"(?:^|\s)([A-Za-z:/]+)=(\S*)", text))
    line = re.search(r"\sSubmitLine=(.*?)(?=\s[A-Z]\w*=|\s*$)", text)  # from 25.05 on; the accounting has it before
    if "NumNodes" not in found:
        raise ValueError(f"got {text[:200]!r}; allowed: a job of Slurm")
    return JobRecord(
        nodes=int(found["NumNodes"].partition("-")[0]),
        node_list=found.get("NodeList", ""),
        cpus=int(found.get("NumCPUs", "1")),
        partition=found.get("Partition", ""),
        account=found.get("Account", "").replace("(null)", ""),
        qos=found.get("QOS", "").replace("(null)", ""),
        batch_host=found.get("BatchHost", ""),
        submit_line=line[1] if line else None,
        is_exclusive=found.get("OverSubscribe") == "NO",
        gres=re.sub("^gres[:/]", "", found.get("TresPerNode", "")),
        output=found.get("StdOut", "").replace("/dev/null", ""),
        holds_gres=bool(_HOLDS.search(found.get("AllocTRES") or found.get("TRES", ""))),
    )


def read_submitted(
    environment: Mapping[str, str], *, run: Run = run_command, sruns: Callable[[str], list[list[str]]] | None = None
) -> SubmittedJob:
    """Ask for all that says how the job and the step of this launcher were submitted. What cannot be read is None."""
    job, step = job_of(environment), environment.get("SLURM_STEP_ID", "")
    record = _ask(lambda: read_job(run(["scontrol", "--oneliner", "show", "job", job])))
    script = _ask(lambda: run(["scontrol", "write", "batch_script", job, "-"]))
    lines = _ask(lambda: submit_lines(run(["sacct", "-n", "-P", "-j", job, "-o", "JobID,SubmitLine"]))) or {}
    running = (sruns or sruns_here)(job)
    step_line = lines.get(f"{job}.{step}")
    if step_line is None and len(running) == 1:
        step_line = shlex.join(running[0])
    return SubmittedJob(
        environment=environment,
        script=script,
        job_line=(record.submit_line if record else None) or lines.get(job),
        step_line=step_line,
        batch_host=record.batch_host if record else "",
    )


def submit_lines(text: str) -> dict[str, str]:
    rows = (line.split("|", 1) for line in text.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2 and row[1]}


def sruns_here(job: str, *, proc: Path = Path("/proc")) -> list[list[str]]:
    entry, found = f"SLURM_JOB_ID={job}".encode(), []
    for folder in proc.glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")[:-1]
            is_srun = bool(words) and words[0].rpartition(b"/")[2] == b"srun" and entry in _environment(folder)
            if is_srun and not _is_child_of_another(folder, proc):
                found.append([os.fsdecode(word) for word in words])
        except OSError:  # noqa: PERF203  # it has ended, or is another user's
            continue
    return found


def _environment(folder: Path) -> list[bytes]:
    return (folder / "environ").read_bytes().split(b"\0")


def _is_child_of_another(folder: Path, proc: Path) -> bool:
    parent = re.search(rb"^PPid:\s*(\d+)", (folder / "status").read_bytes(), re.MULTILINE)
    if parent is None:
        return False
    return (proc / parent[1].decode() / "cmdline").read_bytes() == (folder / "cmdline").read_bytes()


def _ask(ask: Callable[[], T]) -> T | None:
    try:
        return ask()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
