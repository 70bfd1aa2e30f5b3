"""This machine as the cluster that ``holdfast submit`` hands a job to."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from holdfast.cli.submission import SbatchArguments, submit_job
from holdfast.cli.terminal import CommandError


class Machine:
    """What is put into the bucket appears in a folder; sbatch notes what it is given."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs, self.folder, tools = place / "js o;b", place / "folder [red] x", place / "bin"
        for directory in (self.jobs, self.folder, tools):
            directory.mkdir()
        noted = '"$PWD" "$HOLDFAST_TOKEN" "${HOLDFAST_SUBMISSION-none}" "$@"'
        (tools / "sbatch").write_text(f'#!/bin/sh\nprintf "%s\\0" {noted} > "$SEEN"\necho 17\n')
        (tools / "sbatch").chmod(0o755)
        self.seen = place / "seen"
        self.users: list[str | None] = []
        self.before_unpacking: Callable[[], int | str | None] = lambda: None
        # A login shell sets PATH anew; the account's profile has the last word.
        (place / ".bash_profile").write_text(f"PATH={tools}:$PATH\n")
        self._environment = {"PATH": os.environ["PATH"], "SEEN": str(self.seen), "HOME": str(place)}
        monkeypatch.setattr("holdfast.cli.submission.job_files.run", self._run)
        monkeypatch.setattr(
            "holdfast.cli.submission.job_files.jobs_prefix", lambda _: ("bucket", "jobs", str(self.jobs))
        )
        monkeypatch.setattr("holdfast.cli.submission.job_files.controller_hostname", lambda _: "head")
        monkeypatch.setattr("holdfast.cli.submission.job_files.mount_paths", lambda _: ["/fsx"])
        monkeypatch.setattr("holdfast.cli.submission.job_files.record_event", lambda *_, **__: None)

    def _run(
        self,
        _: Any,
        *,
        node: str,
        argv: Sequence[str],
        user: str | None = None,
        text: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 20.0,
    ) -> "subprocess.CompletedProcess[str]":
        assert node == "head"
        self.users.append(user)
        if "unpack" in argv and (struck := self.before_unpacking()) is not None:
            if isinstance(struck, str):
                raise CommandError(struck)
            return subprocess.CompletedProcess(argv, struck, "", "")
        environment = {**self._environment, **(env or {})}
        return subprocess.run(
            list(argv),
            input=text,
            env=environment,
            cwd="/",
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
            timeout=timeout_s,
        )

    def put_object(self, *, Bucket: str, Key: str, Body: IO[bytes], Metadata: dict[str, str]) -> None:  # noqa: N803
        self.metadata = Metadata
        target = self.jobs / Key.removeprefix("jobs/")
        target.write_bytes(Body.read())

    def delete_object(self, *, Bucket: str, Key: str) -> None:  # noqa: N803
        (self.jobs / Key.removeprefix("jobs/")).unlink(missing_ok=True)

    def submit(self, name: str, *words: str, submission: str | None = None, root: Path | None = None) -> str:
        """Submit a file of the folder."""
        context: Any = SimpleNamespace(client=lambda _: self)
        given = SbatchArguments.parse(words, arguments=None)
        file = self.folder / name
        return submit_job(context, file=file, user="ubuntu", words=given, submission=submission, folder=root)

    def sent(self) -> Path:
        """The folder in which sbatch was called."""
        return Path(self.noted()[0])

    def noted(self) -> list[str]:
        """Folder, token, submission and words of sbatch."""
        return self.seen.read_bytes().decode(errors="surrogateescape").split("\0")[:-1]
