"""
``holdfast submit`` under Slurm: upload the folder, unpack it, and run sbatch.

The folder is uploaded as one archive to the S3 prefix that the file system imports at /jobs. The job's user unpacks it
on the controller and submits there, the same for every cloud.
"""

import os
import posixpath
import re
import secrets
import stat
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from holdfast.cli.deployed import (
    Context,
    controller_hostname,
    jobs_prefix,
    mount_paths,
    record_event,
    run,
    stack_outputs,
)
from holdfast.cli.submission.archives import NOT_THERE_YET, UNPACK, temporary_archive
from holdfast.cli.submission.caller import FromCaller, from_caller
from holdfast.cli.submission.folders import JobFolder, read_folder
from holdfast.cli.submission.job_text import late_options, options_of, value_of
from holdfast.cli.submission.links import leads_nowhere
from holdfast.cli.submission.manifests import is_manifest, read_manifests
from holdfast.cli.submission.plain_files import (
    JobFile,
    check_batch_file,
    check_plain,
    job_file,
    names_left_out,
    names_outside,
)
from holdfast.cli.submission.remarks import left_out_line, pointer_line, shown, tell
from holdfast.cli.submission.sbatch_options import SbatchArguments
from holdfast.cli.terminal import CommandError, step
from holdfast.localcloud.fsx import to_metadata
from holdfast_common import kinds

APPEAR_TIMEOUT_S = 30.0
UNPACK_TIMEOUT_S = 120.0
LONGEST_NAME = 200
NOT_UP_YET = "(connect failure)"
"""Of sbatch, which has handed over nothing then: slurmctld of a controller that was replaced has not started."""


_ABOUT_NODES = re.compile("partition|configuration|feature|gres|count", re.IGNORECASE)
"""In what sbatch prints of a request that no node of the cluster meets (Slurm, src/common/slurm_errno.c)."""
_SINFO = "partition %R: %D nodes with %c CPUs, %m MB, %G, features %f"


def check_job_file(file: Path, *, folder: Path | None = None) -> None:
    """Refuse files that cannot be a job, before any upload. Raises: CommandError."""
    found = job_file(file, folder=folder)
    if is_manifest(file):
        read_manifests(file)
    else:
        check_batch_file(found)


def prepare_data(context: Context, *, program: Path) -> None:
    """Run a program here that uploads data to the bucket. Raises: CommandError: none, a link, or it fails."""
    check_plain(program, what="prepare program")
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
    context: Context,
    *,
    file: Path,
    user: str,
    words: SbatchArguments | None = None,
    submission: str | None = None,
    folder: Path | None = None,
) -> str:
    """
    Upload and unpack a job folder, run sbatch, and return the job id; empty if sbatch submits nothing (--test-only).

    Raises:
        CommandError: one of these failed.
    """
    words = words or SbatchArguments()
    job = job_file(file, folder=folder)
    text = job.read().decode(errors="replace")
    caller = from_caller(os.environ, text=text, options=words.options, script_options=options_of(text))
    with step(f"submit {shown([job.name])}") as progress:
        listed = read_folder(job.folder, always=job.path)
        _check_working_folder(listed, start=job.start, words=words, text=text)
        sent = _UploadedFolder.begin(context, folder=listed, user=user)
        archive, pointers = temporary_archive(listed, progress=progress.update)
        with archive:
            progress.update(
                f"{len(listed.entries)} entries, {archive.tell() >> 10} KiB to s3://{sent.bucket}/{sent.key}"
            )
            remarks = _remarks(context, listed, file=job, text=text, pointers=pointers, caller=caller)
            sent.put(archive)
        job_id, printed = _sbatch(sent, file=job, words=words, caller=caller, submission=submission)
        progress.update(f"job {job_id} in {sent.folder}" if job_id else "nothing submitted")
        if not job_id:
            sent.remove_folder()
    for line in remarks if job_id else [*remarks, *printed.splitlines()]:
        tell(line)
    if job_id:
        record_event(context, kind=kinds.JOB_SUBMITTED, job=job_id)
    return job_id


@dataclass(frozen=True, kw_only=True)
class _UploadedFolder:
    context: Context
    controller: str
    user: str
    owner: tuple[int, int]
    bucket: str
    key: str
    archive: str
    folder: str

    @staticmethod
    def begin(context: Context, *, folder: JobFolder, user: str) -> "_UploadedFolder":
        bucket, prefix, directory = jobs_prefix(context)
        controller = controller_hostname(context)
        answer = run(context, node=controller, argv=["/bin/sh", "-c", "id -u && id -g"], user=user)
        if answer.returncode:
            raise CommandError(f"account {user} on {controller}: {answer.stderr.strip()}", exit_code=1)
        uid, gid = (int(word) for word in answer.stdout.split())
        token = secrets.token_hex(4)
        name = f"{os.fsdecode(os.fsencode(folder.root.name)[:LONGEST_NAME])}-{token}"
        return _UploadedFolder(
            context=context,
            controller=controller,
            user=user,
            owner=(uid, gid),
            bucket=bucket,
            key=f"{prefix}/.{token}.tar",
            archive=f"{directory}/.{token}.tar",
            folder=f"{directory}/{name}",
        )

    def put(self, archive: IO[bytes]) -> None:
        """Upload, unpack and remove the archive, also after a failure."""
        size = archive.tell()
        archive.seek(0)
        uid, gid = self.owner
        metadata = to_metadata(mode=0o400, owner=uid, group=gid, mtime_ns=time.time_ns())
        s3 = self.context.client("s3")
        try:
            s3.put_object(Bucket=self.bucket, Key=self.key, Body=archive, Metadata=metadata)
            self._unpack(size)
        finally:
            s3.delete_object(Bucket=self.bucket, Key=self.key)

    def _unpack(self, size: int) -> None:
        deadline = time.monotonic() + APPEAR_TIMEOUT_S
        while (why := self._cannot_unpack(size)) is not None:
            if time.monotonic() > deadline:
                raise CommandError(
                    f"the job folder was not imported to {self.folder} within {APPEAR_TIMEOUT_S:g} s, and nothing was "
                    f"submitted: {why}",
                    exit_code=1,
                )
            time.sleep(0.2)

    def _cannot_unpack(self, size: int) -> str | None:
        """Reason to wait; None once unpacked. A dead controller is replaced in seconds. Raises: CommandError."""
        argv = ["/bin/sh", "-c", UNPACK, "unpack", self.archive, str(size), self.folder]
        try:
            answer = run(self.context, node=self.controller, argv=argv, user=self.user, timeout_s=UNPACK_TIMEOUT_S)
        except CommandError as error:
            return str(error)
        if answer.returncode == 0:
            return None
        if answer.returncode == NOT_THERE_YET:
            return "the file system has not imported it; see: holdfast status"
        if answer.returncode < 0 or answer.returncode > 128:
            return f"{self.controller} ended while unpacking"
        self.remove_folder()
        why = answer.stderr.strip().rpartition("\n")[2] or f"exit code {answer.returncode}"
        raise CommandError(f"the job folder cannot be unpacked in {self.folder}: {why}", exit_code=1)

    def sbatch(self, argv: Sequence[str], *, start: str, environment: Mapping[str, str]) -> Any:
        # The shell is for the account's profile; names are arguments of it and never its program. The token is made
        # there: what a session runs on AWS is recorded.
        script = (
            'cd -- "$1" && shift && HOLDFAST_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d " \\n") && '
            'export HOLDFAST_TOKEN && exec "$@"'
        )
        command = ["/bin/bash", "-lc", script, "submit", posixpath.join(self.folder, start), *argv]
        return run(self.context, node=self.controller, argv=command, user=self.user, env=environment)

    def partitions(self, why: str) -> str:
        """Partitions of the cluster, where no node meets a request; empty for another refusal, or without an answer."""
        if not _ABOUT_NODES.search(why):
            return ""
        argv = ["/bin/bash", "-lc", f"exec sinfo --noheader --format='{_SINFO}'"]
        try:
            answer = run(self.context, node=self.controller, argv=argv, user=self.user)
        except CommandError:
            return ""
        found = [line.replace(", features (null)", "").replace(", (null)", "") for line in answer.stdout.splitlines()]
        has = f"; the cluster has {'; '.join(found)}" if found else ""
        return f"{has}; options after the job file override its own, such as --partition=NAME"

    def remove_folder(self) -> None:
        """Remove the folder of a job that was not submitted."""
        try:
            run(self.context, node=self.controller, argv=["rm", "-rf", "--", self.folder], user=self.user)
        except CommandError as error:
            tell(f"{self.folder} could not be removed: {error}")


def _sbatch(
    sent: _UploadedFolder, *, file: JobFile, words: SbatchArguments, caller: FromCaller, submission: str | None
) -> tuple[str, str]:
    """Job id, empty if none was submitted, and standard error of sbatch."""
    # sbatch hands its environment on to the job: its launchers know each other by it, and nobody else sees it.
    environment = dict(caller.passed)
    if submission is not None:
        environment["HOLDFAST_SUBMISSION"] = submission
    exported = [] if caller.export is None else [f"--export={caller.export}"]
    # Absolute, as sbatch records the name of a file in its folder: jobs find their own folder by it.
    argv = ["sbatch", "--parsable", *words.options, *exported, f"{sent.folder}/{file.path}", *words.arguments]
    deadline = time.monotonic() + APPEAR_TIMEOUT_S
    try:
        answer = sent.sbatch(argv, start=file.start, environment=environment)
        while NOT_UP_YET in answer.stderr and time.monotonic() < deadline:
            time.sleep(0.5)
            answer = sent.sbatch(argv, start=file.start, environment=environment)
    except CommandError as error:
        raise CommandError(
            f"{error}; the job may have been submitted from {sent.folder}: see holdfast jobs",
            exit_code=1,
        ) from None
    if answer.returncode:
        sent.remove_folder()
        why = "; ".join(line.removeprefix("sbatch: error: ") for line in answer.stderr.strip().splitlines())
        raise CommandError(f"sbatch refused {shown([file.name])}: {why}{sent.partitions(why)}")
    return answer.stdout.strip().partition(";")[0], answer.stderr


def _check_working_folder(folder: JobFolder, *, start: str, words: SbatchArguments, text: str) -> None:
    chdir = value_of(words.options, "--chdir", "-D") or value_of(options_of(text), "--chdir", "-D")
    if chdir is None or (chdir.startswith("/") and not Path(chdir).is_relative_to(folder.root)):
        return
    if chdir.startswith("/"):
        relative = os.path.relpath(chdir, folder.root / start)
        raise CommandError(f"got --chdir {chdir}, a path of this machine; on the nodes it is: --chdir {relative}")
    relative = os.path.normpath(posixpath.join(start, chdir))
    folders = {one.path for one in folder.entries if not stat.S_ISREG(one.info.st_mode)}
    if relative != "." and relative not in folders and relative.partition("/")[0] not in folder.links:
        raise CommandError(f"got --chdir {chdir}; allowed: a folder of the job folder {folder.root}, or of the nodes")


def _remarks(
    context: Context, folder: JobFolder, *, file: JobFile, text: str, pointers: Sequence[str], caller: FromCaller
) -> list[str]:
    lines = [file.remark, left_out_line(folder.left_out), caller.line]
    lines += [
        f"{shown([file.name])}, line {number}: sbatch ignores {line!r} after the first command; move it up"
        for number, line in late_options(text)
    ]
    lines += map(pointer_line, pointers)
    broken = leads_nowhere(
        folder.links, paths=[one.path for one in folder.entries], mounts=mount_paths(context) if folder.links else ()
    )
    lines += [
        f"the link {shown([path])} -> {shown([folder.links[path]])} leads nowhere on the nodes: its target is neither "
        "in the job folder nor below a mount of the cluster"
        for path in broken
    ]
    lines += [names_outside(file, text), names_left_out(file, text, folder.left_out)]
    return [line for line in lines if line]
