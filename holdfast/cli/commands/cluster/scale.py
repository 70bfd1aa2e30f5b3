"""``holdfast scale``."""

import json
from typing import Annotated

import typer

from holdfast.cli.deployed import Context, check_job_id, controller_hostname, known_jobs, load, refuse_on_aws, run
from holdfast.cli.slurm import JobRecord
from holdfast.cli.terminal import CommandError, console

# The launcher of the job on this node, whatever its user's folder for sockets is; what it is told; what it answers.
_ASK = """
import glob, json, socket, sys
run, said = sys.argv[1:]
for path in sorted(glob.glob(f"/tmp/holdfast-run-{run}-*.sock") + glob.glob(f"/run/user/*/holdfast-run-{run}-*.sock")):
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(5)
        try:
            line.connect(path)
            line.sendall(f"{said}\\n".encode())
            print(line.makefile().read())
            break
        except OSError:
            continue
"""


def scale(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Number, or NUMBER_TASK of a job array.")],
    nodes: Annotated[int, typer.Argument(metavar="N", help="Nodes that it is to have; one of its sizes.", min=1)],
) -> None:
    """Ask an elastic job for another number of nodes, while it trains."""
    context = load()
    if context.orchestrator == "eks":
        raise CommandError(
            f"holdfast scale does not reach pods yet; inside a pod of the job: holdfast-run scale {nodes}"
        )
    record = _running(context, check_job_id(job))
    number = job.partition("_")[0]
    host = _first_host(context, record)
    answer = run(context, node=host, argv=["python3", "-c", _ASK, number, f"scale {nodes}"])
    try:
        refused = json.loads(answer.stdout)["refused"]
    except (ValueError, KeyError, TypeError):
        raise CommandError(
            f"no launcher of job {job} answers on {host}; it runs under holdfast-run where its size can change"
        ) from None
    if refused:
        raise CommandError(f"job {job}: {refused}", exit_code=1)
    console.print(f"job {job}: {nodes} nodes are asked for; holdfast events shows the change")


def _running(context: Context, job: str) -> JobRecord:
    refuse_on_aws(context, what="holdfast scale")
    found = [one for one in known_jobs(context, jobs=[job]) if one.job_id == job or one.job_id.startswith(f"{job}_")]
    if not found:
        raise CommandError(f"Slurm knows no job {job}; those it knows: holdfast jobs")
    running = [one for one in found if one.state == "RUNNING" and one.nodes]
    if not running:
        raise CommandError(f"job {job} is {found[0].state}, and only one that runs can change its size")
    return running[0]


def _first_host(context: Context, record: JobRecord) -> str:
    """Of its nodes; Slurm writes them as ip-10-1-0-[11-12]."""
    answer = run(context, node=controller_hostname(context), argv=["scontrol", "show", "hostnames", record.nodes])
    hosts = answer.stdout.split()
    if answer.returncode or not hosts:
        raise CommandError(f"scontrol does not know the nodes of job {record.job_id}: {answer.stderr.strip()}")
    return hosts[0]
