"""Resize requests for elastic jobs, sent to the launcher of one node or pod."""

import json

from holdfast.cli.deployed.kubernetes import check_kubernetes_job, sign_in, workload
from holdfast.cli.deployed.nodes import run
from holdfast.cli.deployed.sessions import Context
from holdfast.cli.deployed.slurm_jobs import check_job_id, known_jobs
from holdfast.cli.kubernetes import RUNNING, PodRecord, execute
from holdfast.cli.slurm import JobRecord, first_host
from holdfast.cli.terminal import CommandError
from holdfast_common import JOB_API, JOB_KIND, JOB_PLURAL, KubernetesError

_FORBIDDEN = 403

# The launcher of a user's job on this node: in a folder that is this user's alone, with this user at the other end, as
# the kernel has it. What it is told; what it answers, within 5 s and 64 KiB.
_ASK = """
import os, pwd, socket, stat, struct, sys, time
user, run, request = sys.argv[1:]
uid = os.geteuid() if not user else int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid
until = time.monotonic() + 5
for folder in (f"/run/user/{uid}/holdfast", f"/tmp/holdfast-{uid}"):
    try:
        found = os.lstat(folder)
        own = stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not found.st_mode & 0o077
        names = sorted(os.listdir(folder)) if own else []
    except OSError:
        continue
    for name in names:
        if not name.endswith(".sock") or run and name.rpartition("-")[0] != run:
            continue
        with socket.socket(socket.AF_UNIX) as line:
            try:
                line.settimeout(max(until - time.monotonic(), 0.01))
                line.connect(f"{folder}/{name}")
                if struct.unpack("iII", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1] != uid:
                    continue
                line.sendall(f"{request}\\n".encode())
                answer = b""
                while len(answer) < 65536:
                    line.settimeout(max(until - time.monotonic(), 0.01))
                    part = line.recv(65536)
                    if not part:
                        sys.exit(print(answer.decode(errors="replace")))
                    answer += part
            except OSError:
                continue
"""
_OF_THE_POD = ("", "")
"""In a container there are launchers of one job alone, whatever it calls its run, and of the user that asks."""


def ask_for_size(context: Context, *, job: str, nodes: int) -> None:
    """Resize a job after its next step. Raises: CommandError: no such job, it does not run, or it refuses."""
    if context.orchestrator == "eks" and _is_operated(context, job):
        _resize(context, job, nodes)
        return
    ask = _ask_pods if context.orchestrator == "eks" else _ask_nodes
    refused = ask(context, job=job, request=f"scale {nodes}")
    if refused:
        raise CommandError(f"job {job}: {refused}", exit_code=1)


def _is_operated(context: Context, job: str) -> bool:
    found = workload(context, job=job)
    return found is not None and found.kinds == JOB_KIND


def _resize(context: Context, job: str, nodes: int) -> None:
    """Change the size in the job's manifest; its operator creates or deletes pods."""
    name = check_kubernetes_job(job)
    path = f"/apis/{JOB_API}/namespaces/{name.namespace}/{JOB_PLURAL}/{name.name}"
    try:
        sign_in(context).client.patch(path, {"spec": {"nodes": {"size": nodes}}})
    except KubernetesError as error:
        raise CommandError(f"job {job}: {error}", exit_code=1) from None


def _ask_nodes(context: Context, *, job: str, request: str) -> str:
    record = _running(context, check_job_id(job))
    host = first_host(record.nodes)
    answer = run(context, node=host, argv=["python3", "-c", _ASK, record.user, job.partition("_")[0], request])
    refused = _refused(answer.stdout)
    if refused is None:
        raise CommandError(
            f"no launcher of job {job} answers on {host}; it runs under holdfast-run where its size can change"
        )
    return refused


def _running(context: Context, job: str) -> JobRecord:
    found = [one for one in known_jobs(context, jobs=[job]) if one.job_id == job or one.job_id.startswith(f"{job}_")]
    if not found:
        raise CommandError(f"Slurm has no job {job}; to list jobs: holdfast jobs")
    running = [one for one in found if one.state == "RUNNING" and one.nodes]
    if not running:
        raise CommandError(_does_not_run(job, found[0].state))
    return running[0]


def _ask_pods(context: Context, *, job: str, request: str) -> str:
    pods, client = _running_pods(context, job), sign_in(context).client
    argv = ["python3", "-c", _ASK, *_OF_THE_POD, request]
    silent = []
    for pod in pods:
        for container in reversed(pod.containers):
            try:
                done = execute(client, namespace=pod.namespace, pod=pod.name, container=container, argv=argv)
            except KubernetesError as error:
                if error.code == _FORBIDDEN:
                    raise CommandError(
                        f"job {job} may not be resized by this user: {error}; required: the right to get and "
                        f"create pods/exec in namespace {pod.namespace}",
                        exit_code=1,
                    ) from None
                silent.append(f"{pod.name}/{container} ({error})")
                continue
            refused = _refused(done.stdout)
            if refused is not None:
                return refused
            silent.append(f"{pod.name}/{container}")
    raise CommandError(
        f"no launcher of job {job} answers in {', '.join(silent)}; it runs under holdfast-run where its size can change"
    )


def _running_pods(context: Context, job: str) -> list[PodRecord]:
    found = workload(context, job=job)
    if found is None:
        raise CommandError(f"Kubernetes has no job {job}; to list jobs: holdfast jobs")
    running = [pod for pod in found.pods if pod.phase == RUNNING]
    if found.has_ended or not running:
        raise CommandError(_does_not_run(job, found.state))
    return running


def _does_not_run(job: str, state: str) -> str:
    return f"job {job} is {state}, and only one that runs can change its size"


def _refused(answer: str) -> str | None:
    try:
        return str(json.loads(answer)["refused"])
    except (ValueError, KeyError, TypeError):
        return None
