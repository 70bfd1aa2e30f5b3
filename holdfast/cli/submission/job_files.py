"""
``holdfast submit``: hand a job file, with the folder it stands in, to the cluster's Slurm.

The folder goes to the S3 prefix that the file system imports at /jobs; once the nodes see it, sbatch
runs on the controller. So the same command works wherever the cluster is.
"""

import hashlib
import os
import re
import secrets
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from holdfast.cli.deployed import Context, controller_hostname, jobs_prefix, record_event, run, stack_outputs
from holdfast.cli.submission.manifests import is_manifest, read_manifests
from holdfast.cli.submission.sbatch_options import Words
from holdfast.cli.terminal import CommandError, step
from holdfast.localcloud.fsx import to_metadata
from holdfast_common import kinds

APPEAR_TIMEOUT_S = 30.0
MAX_FOLDER_BYTES = 64 * 1024 * 1024
SUBMISSION = re.compile(r"[A-Za-z0-9._-]{1,64}")


def check_job_file(file: Path) -> None:
    """
    Refuse what cannot be a job before anything is uploaded.

    Raises:
        CommandError: no such file, a folder, no ``#!`` first line, or no manifest where the name ends like one's.
    """
    if str(file).startswith("-"):
        raise CommandError(f"got {str(file)!r} before the job file; options of sbatch come after it")
    if not file.exists():
        raise CommandError(f"job file {file} does not exist")
    if not file.is_file():
        raise CommandError(f"{file} is not a file; name the job file itself, such as {file}/job.sbatch")
    if is_manifest(file):
        read_manifests(file)
    elif not file.read_bytes().startswith(b"#!"):
        raise CommandError(f"{file} does not begin with #!; a Slurm job file starts with a line such as #!/bin/bash")


def check_submission(name: str | None) -> None:
    """Raises: CommandError: no name that a file and a message can have."""
    if name is not None and not SUBMISSION.fullmatch(name):
        raise CommandError(
            f"got --submission {name!r}; allowed: up to 64 letters, digits, '.', '_' and '-', such as llama-8b"
        )


def prepare_data(context: Context, *, program: Path) -> None:
    """
    Run a program on this machine that puts the job's data into the data bucket.

    Raises:
        CommandError: it does not exist or fails.
    """
    if not program.is_file():
        raise CommandError(f"prepare program {program} does not exist")
    bucket = stack_outputs(context)["DataBucketName"]
    environment = None
    if context.session.cloud == "embedded":
        environment = context.local.client_environment(region=context.session.region)
    with step(f"prepare data with {program.name}") as progress:
        done = subprocess.run(
            [sys.executable, str(program), "--bucket", bucket],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        progress.update(f"s3://{bucket}")
        if done.returncode:
            raise CommandError(f"{program} failed with exit code {done.returncode}:\n{done.stderr.strip()[-800:]}")


def submit_job(
    context: Context, *, file: Path, user: str, words: Words | None = None, submission: str | None = None
) -> str:
    """
    Upload the folder of ``file``, wait until the controller sees it, sbatch it there. Returns the job id.

    Args:
        submission: Whose run folders the job goes on with; None: its own, known by its number.
    """
    bucket, prefix, directory = jobs_prefix(context)
    controller = controller_hostname(context)
    folder = file.resolve().parent
    files = _files(folder)
    name = f"{folder.name}-{_digest(files)}"
    words = words or Words()
    with step(f"submit {file.name}") as progress:
        progress.update(f"{len(files)} files to s3://{bucket}/{prefix}/{name}")
        s3 = context.client("s3")
        for one in files:
            # Readable for whoever owns the job, whatever the umask was here.
            metadata = to_metadata(mode=0o755 if one.executable else 0o644, mtime_ns=one.mtime_ns)
            s3.put_object(Bucket=bucket, Key=f"{prefix}/{name}/{one.path}", Body=one.content, Metadata=metadata)
        target = f"{directory}/{name}"
        _wait_for_files(context, controller=controller, directory=target, names=[one.path for one in files])
        # The shell is for the account's profile; names are arguments of it and never its program.
        script = 'cd -- "$1" && shift && exec "$@"'
        command = [target, "sbatch", "--parsable", *words.options, f"./{file.name}", *words.arguments]
        argv = ["/bin/bash", "-lc", script, "submit", *command]
        # sbatch hands its environment on to the job: its launchers know each other by it, and nobody else sees it.
        handed_on = {"HOLDFAST_TOKEN": secrets.token_hex(32)}
        if submission is not None:
            handed_on["HOLDFAST_SUBMISSION"] = submission
        answer = run(context, node=controller, argv=argv, user=user, env=handed_on)
        if answer.returncode:
            raise CommandError(f"sbatch refused {file.name}: {answer.stderr.strip()}")
        job_id = answer.stdout.strip().partition(";")[0]
        progress.update(f"job {job_id} in {target}")
    record_event(context, kind=kinds.JOB_SUBMITTED, job=job_id)
    return job_id


@dataclass(frozen=True, kw_only=True)
class _File:
    """A file of the folder as it is uploaded."""

    path: str
    content: bytes
    executable: bool
    mtime_ns: int


def _digest(files: list[_File]) -> str:
    """Of names, contents and executable bits, so that a folder on the nodes never changes under a job."""
    digest = hashlib.sha256()
    for one in files:
        digest.update(f"{one.path}\0{one.executable}\0{len(one.content)}\0".encode() + one.content)
    return digest.hexdigest()[:8]


def _files(folder: Path) -> list[_File]:
    """What goes along; a folder that is too large is refused before anything of it is read."""
    paths, total = [], 0
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        if any(part.startswith((".", "__pycache__")) for part in relative.parts) or not path.is_file():
            continue
        try:
            str(relative).encode()
        except UnicodeEncodeError:
            raise CommandError(
                f"{str(path)!a}: names in a job folder must be UTF-8, as keys of S3 are; rename it"
            ) from None
        total += path.stat().st_size
        if total > MAX_FOLDER_BYTES:
            raise CommandError(
                f"{folder} holds more than {MAX_FOLDER_BYTES >> 20} MiB, and all of it would go along with the job; "
                "put the job file into a folder of its own, and data into the data bucket"
            )
        paths.append(path)
    return [_file(path, folder=folder) for path in sorted(paths)]


def _file(path: Path, *, folder: Path) -> _File:
    info = path.stat()
    return _File(
        path=str(path.relative_to(folder)),
        content=path.read_bytes(),
        executable=bool(info.st_mode & stat.S_IXUSR),
        mtime_ns=info.st_mtime_ns,
    )


def _wait_for_files(context: Context, *, controller: str, directory: str, names: list[str]) -> None:
    script = 'cd -- "$1" && xargs -0 ls -d -- > /dev/null'
    argv = ["/bin/sh", "-c", script, "look", directory]
    deadline = time.monotonic() + APPEAR_TIMEOUT_S
    while run(context, node=controller, argv=argv, text="\0".join(names)).returncode:
        if time.monotonic() > deadline:
            raise CommandError(f"the job's files did not appear in {directory} within {APPEAR_TIMEOUT_S:g} s")
        time.sleep(0.2)
