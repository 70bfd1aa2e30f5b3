"""The helm program: install or upgrade a release, uninstall it, and clear what an interrupted run has left behind."""

import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REASON_CHARS = 1500
"""How much is told of why helm failed. A response to CloudFormation has room for 4 KB."""


class HelmError(Exception):
    """Helm did not do what it was asked for."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """A release's name and namespace."""

    name: str
    namespace: str


@dataclass(frozen=True, kw_only=True)
class Helm:
    """Helm 4, pointed at one cluster."""

    binary: Path
    kubeconfig: Path
    home: Path
    """A folder for helm's caches."""
    timeout_s: int = 300
    """Default: 300. Rolling back may take as long again, and a Lambda function has 900 seconds."""

    def install(self, release: Release, *, chart: Path, values: Path, wait: bool) -> None:
        """
        Install or upgrade. HelmError says why it failed.

        Args:
            release: Which.
            chart: Its folder.
            values: A file of JSON or YAML.
            wait: Until everything in it runs; what does not in time is rolled back.
        """
        self._clear_interrupted(release)
        waiting = ["--wait=watcher", "--rollback-on-failure"] if wait else []
        self._run(
            "upgrade", release.name, str(chart), "--install", "--create-namespace", f"--namespace={release.namespace}",
            f"--values={values}", f"--timeout={self.timeout_s}s", "--history-max=5", *waiting,
        )  # fmt: skip

    def uninstall(self, release: Release) -> None:
        """Uninstall. A release that is not there is uninstalled already."""
        self._run(
            "uninstall", release.name, f"--namespace={release.namespace}", "--ignore-not-found",
            f"--timeout={self.timeout_s}s",
        )  # fmt: skip

    def status(self, release: Release) -> str | None:
        """Helm's word for the release's state, such as "deployed"; None when it is not there or cannot be asked for."""
        found = self._call(["status", release.name, f"--namespace={release.namespace}", "--output=json"])
        return str(json.loads(found.stdout)["info"]["status"]) if found.returncode == 0 else None

    def _clear_interrupted(self, release: Release) -> None:
        """Helm refuses to touch a release whose last run was cut off. Undo that run first."""
        status = self.status(release) or ""
        if status == "pending-install":
            self.uninstall(release)
        elif status.startswith("pending-"):
            self._run("rollback", release.name, f"--namespace={release.namespace}", f"--timeout={self.timeout_s}s")

    def _run(self, *arguments: str) -> None:
        done = self._call(arguments)
        if done.returncode != 0:
            error = re.search(r"^Error: .*", done.stderr, re.DOTALL | re.MULTILINE)
            said = (error[0] if error else done.stderr).strip()[:REASON_CHARS]
            raise HelmError(f"helm {' '.join(arguments[:2])} failed with exit {done.returncode}: {said}")

    def _call(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.defpath,
            "HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
        }
        try:
            return subprocess.run(
                [self.binary, *arguments],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=2 * self.timeout_s + 60,
            )
        except subprocess.TimeoutExpired as error:
            raise HelmError(f"helm {' '.join(arguments[:2])} did not end within {error.timeout:.0f} s") from error
