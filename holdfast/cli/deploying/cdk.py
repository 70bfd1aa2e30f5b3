"""
CDK command line as a child process: bootstrap, synth, deploy.

Its output goes to a log file. Progress is read from CloudFormation, the same for the embedded AWS and the real one.
"""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.cli.deploying.app import app_folder
from holdfast.cli.deploying.node import find_node
from holdfast.cli.terminal import CommandError
from holdfast.localcloud.home import remove_tree_quietly
from holdfast.localcloud.processes import spawn

POLL_S = 0.25
BOOTSTRAP_STACK = "CDKToolkit"


@dataclass(frozen=True, kw_only=True)
class Cdk:
    """
    The CDK CLI for one environment.

    Args:
        environment_file: The environment to synthesise.
        variables: Environment variables for the CLI, such as the endpoint and credentials of the embedded AWS.
        work: Folder for the cloud assembly and the log.
        cli: The CLI's program. Default: none, for a synthesis alone.
    """

    environment_file: Path
    variables: Mapping[str, str]
    work: Path
    cli: Path | None = None
    _children: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @property
    def assembly(self) -> Path:
        return self.work / "cdk.out"

    @property
    def temporary(self) -> Path:
        """TMPDIR of all children, since a signal leaves unpacked files of the CDK and jsii there."""
        return self.work / "tmp"

    @property
    def log(self) -> Path:
        return self.work / "log" / "cdk.log"

    def start_bootstrap(self, *, account: str, region: str) -> "subprocess.Popen[bytes]":
        return self._start("bootstrap", f"aws://{account}/{region}")

    @functools.cached_property
    def _node(self) -> Path:
        return find_node()

    def start_synth(self) -> "subprocess.Popen[bytes]":
        shutil.rmtree(self.assembly, ignore_errors=True)
        app = app_folder(self.environment_file)
        context = json.loads((app / "cdk.json").read_text()).get("context", {})
        context["environment"] = str(self.environment_file)
        variables = {"CDK_OUTDIR": str(self.assembly), "CDK_CONTEXT_JSON": json.dumps(context)}
        return self._popen("synth", [sys.executable, "app.py"], cwd=app, extra=variables)

    def start_deploy(self, *, stack_name: str) -> "subprocess.Popen[bytes]":
        return self._start(
            "deploy", stack_name, "--app", str(self.assembly), "--require-approval", "never", "--progress", "events"
        )

    def wait(self, child: "subprocess.Popen[bytes]", *, what: str, progress: Callable[[], None]) -> None:
        """Wait for ``child``, calling ``progress``. Raises: CommandError: it failed; with the last lines of its log."""
        try:
            while child.poll() is None:
                progress()
                time.sleep(POLL_S)
        finally:
            self.end(child)
        if child.returncode:
            raise CommandError(f"{what} failed with exit code {child.returncode}: {self._reason()}\n(log: {self.log})")

    def end(self, child: "subprocess.Popen[bytes]") -> None:
        """End a child; after the last one, remove the temporary files."""
        end(child)
        self._children[:] = [one for one in self._children if one is not child]
        if not self._children:
            remove_tree_quietly(self.temporary)

    def _start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        assert self.cli is not None
        # Not in the project folder: the cdk.json there would make every call synthesise the app again.
        argv = [str(self._node), str(self.cli), *arguments, "--no-notices", "--no-color"]
        return self._popen("cdk", argv, cwd=self.work, extra={})

    def _popen(self, name: str, argv: list[str], *, cwd: Path, extra: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        self.temporary.mkdir(mode=0o700, exist_ok=True)
        programs = (str(Path(sys.prefix) / "bin"), str(self._node.parent), os.environ.get("PATH", os.defpath))
        path = os.pathsep.join(programs)
        environment = {**self.variables, **extra, "PATH": path, "TMPDIR": str(self.temporary)}
        child, _ = spawn(name=name, argv=argv, home=self.work, log=self.log, cwd=cwd, environment=environment)
        self._children.append(child)
        return child

    def _reason(self) -> str:
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        failures = [line for line in lines if "_FAILED" in line or "rror" in line or ".yaml:" in line]
        return "\n".join((failures or lines)[-4:])


def end(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is not None:
        return
    os.killpg(child.pid, signal.SIGTERM)
    try:
        child.wait(timeout=3.0)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def stack_exists(cloudformation: Any, *, name: str) -> bool:
    return bool(status := stack_status(cloudformation, name=name)) and not status.startswith(
        ("REVIEW", "DELETE", "ROLLBACK")
    )


def stack_status(cloudformation: Any, *, name: str) -> str:
    """Status of a stack; empty if it does not exist."""
    from botocore.exceptions import ClientError

    try:
        return str(cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])
    except ClientError as error:
        if "does not exist" not in str(error):
            raise
        return ""
