"""The ``holdfast`` command: verbs, errors, exit codes."""

import atexit
import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from rich.text import Text
from typer.core import TyperGroup

from holdfast.cli.terminal import Command, CommandError, Interrupted, error_console
from holdfast.environments import NoSuchEnvironmentError

OF_A_PATH = frozenset(
    {errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EROFS, errno.ENXIO}
)
"""Errors of a given path, or of the caller's rights."""
LONGEST_SHOWN = 80
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 + SIGINT."""


@dataclass(frozen=True, kw_only=True)
class _Verb:
    panel: str
    of: str
    """Its module in holdfast.cli.commands, and its function, or the typer app of a group of commands."""
    example: str = ""


def _verb(panel: str, of: str, example: str = "") -> _Verb:
    return _Verb(panel=panel, of=of, example=example)


_VERBS: Mapping[str, _Verb] = {
    "init": _verb("Environments", "environment.init:init", "holdfast init lab --name lab --region us-east-2 --yes"),
    "check": _verb("Environments", "environment.check:check", "holdfast check slurm-p5"),
    "explain": _verb("Environments", "environment.explain:explain", "holdfast explain HF041"),
    "diff": _verb("Environments", "environment.diff:diff", "holdfast diff slurm-p5"),
    "plan": _verb("Environments", "environment.plan:plan", "holdfast plan slurm-p5 --price ec2-on-demand"),
    "import": _verb(
        "Environments",
        "environment.import_:import_cluster",
        "holdfast import --cluster my-cluster --output my-cluster.yaml",
    ),
    "up": _verb("Deployments", "deployment.up:up", "sudo holdfast up local"),
    "upgrade": _verb("Deployments", "cluster.upgrade:upgrade", "sudo holdfast upgrade local --group workers --dry-run"),
    "use": _verb("Deployments", "deployment.use:use", "holdfast use lab"),
    "down": _verb("Deployments", "deployment.down:down", "sudo holdfast down"),
    "env": _verb("Deployments", "deployment.env:env", 'eval "$(holdfast env)"'),
    "status": _verb("Cluster", "cluster.status:status", "holdfast status --environment slurm-p5"),
    "console": _verb("Cluster", "cluster.console:console_page", "holdfast console slurm-p5 --port 8800"),
    "events": _verb("Cluster", "cluster.events:events", "holdfast events --kind node_lost --since 2h"),
    "logs": _verb("Cluster", "cluster.logs:logs", "holdfast logs --job 7 --follow"),
    "ssh": _verb("Cluster", "cluster.ssh:ssh", "sudo holdfast ssh ip-10-1-0-11 -- nvidia-smi"),
    "submit": _verb("Jobs", "jobs.submit:submit", "holdfast submit train.sbatch --nodes=2 -- --lr 3e-4"),
    "packages": _verb("Jobs", "jobs.packages:packages", "sudo holdfast packages requirements.txt"),
    "jobs": _verb("Jobs", "jobs.jobs:jobs", "holdfast jobs --failed --days 30"),
    "why": _verb("Jobs", "jobs.why:why", "holdfast why 7"),
    "cancel": _verb("Jobs", "jobs.jobs:cancel", "holdfast cancel 7"),
    "scale": _verb("Jobs", "jobs.scale:scale", "holdfast scale 7 4"),
    "incidents": _verb(
        "Faults and recovery", "cluster.incidents:incidents", "holdfast incidents --since 1d --html incidents.html"
    ),
    "kill-node": _verb(
        "Faults and recovery", "cluster.kill_node:kill_node", "sudo holdfast kill-node ip-10-1-0-11 --fault freeze"
    ),
    "inject": _verb(
        "Faults and recovery", "cluster.inject:inject", "sudo holdfast inject ip-10-1-0-11 xid-79 --for 60"
    ),
    "rehearse": _verb("Faults and recovery", "cluster.rehearse:rehearse", "sudo holdfast rehearse train.sbatch"),
    "images": _verb("Local cloud", "deployment.images:app"),
    "kubernetes": _verb("Local cloud", "deployment.kubernetes:app"),
}
OF_FILES_ALONE = frozenset({"check", "explain", "init"})
"""Verbs to which a local cloud does not matter."""


class _Commands(Mapping[str, Any]):
    """Commands by name. Reading one imports its module: a verb does not load the others."""

    def __getitem__(self, name: str) -> Any:
        verb = _VERBS[name]
        module, _, of = verb.of.partition(":")
        imported = import_module(f"holdfast.cli.commands.{module}")
        run = getattr(imported, of)
        if isinstance(run, typer.Typer):
            group = typer.main.get_group(run)
            group.name, group.rich_help_panel = name, verb.panel
            return group
        settings = {"cls": Command, **getattr(imported, "SETTINGS", {})}
        one = typer.Typer(add_completion=False)
        one.command(name, rich_help_panel=verb.panel, epilog=f"Example: {verb.example}", **settings)(run)
        return typer.main.get_command(one)

    def __iter__(self) -> Iterator[str]:
        return iter(_VERBS)

    def __len__(self) -> int:
        return len(_VERBS)


class _Group(TyperGroup):
    def __init__(self, **given: Any) -> None:
        super().__init__(**{**given, "commands": _Commands()})


def _print_version(given: bool) -> None:  # noqa: FBT001 - as the library calls it
    if given:
        from holdfast.localcloud.home import installed_version

        print(f"holdfast {installed_version()}")
        raise typer.Exit


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Provision HyperPod clusters as code and keep training on them running.",
)


@app.callback()
def _whole(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line. User errors exit with 2 and one message; bugs keep their traceback."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    # What was read may hold halves of characters, and a terminal may know few: shown escaped, as on standard error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # Python takes handlers away before it ends: what was said holds, and nothing is left to interrupt.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    home = None if OF_FILES_ALONE.intersection(sys.argv[1:2]) else _claimed_home()
    try:
        app(standalone_mode=True)
    except Interrupted:
        _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        message = _taken_down(home) or _known_failure(error)
        if message is None:
            raise
        _fail(message, error.exit_code if isinstance(error, CommandError) else 2)


def _claimed_home() -> Path | None:
    from holdfast.localcloud import LocalCloudError, from_environment
    from holdfast.localcloud.processes import is_going

    with contextlib.suppress(LocalCloudError, OSError):
        local = from_environment()
        return local.home if local.is_claimed() and not is_going(local.home) else None
    return None


def _taken_down(home: Path | None) -> str:
    if home is None:
        return ""
    from holdfast.localcloud.home import MARKER
    from holdfast.localcloud.processes import holder_of, is_going

    if (home / MARKER).exists() and not is_going(home):
        return ""
    holder = holder_of(home)
    if holder is not None and holder.pid == os.getpid():
        return ""
    by = f" by {holder}" if holder is not None else ""
    return f"the local cloud in {home} was taken down{by} while this command ran; restart it with: holdfast up ENV"


def _known_failure(error: Exception) -> str | None:
    if isinstance(error, CommandError | NoSuchEnvironmentError):
        return str(error)
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    from holdfast.cli.deployed import AwsError, UnreachableError
    from holdfast.localcloud import LocalCloudError, ProcessError
    from holdfast.localcloud.nodes import NodeError

    if isinstance(error, LocalCloudError | ProcessError | NodeError | UnreachableError):
        return str(error)
    if isinstance(error, AwsError):
        return f"AWS refused: {error}"
    if isinstance(error, NoCredentialsError):
        return "got no AWS credentials; log in, or set AWS_PROFILE; see: aws configure list"
    if isinstance(error, ClientError | BotoCoreError):
        return f"AWS request failed: {error}"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"the disk is full: {error}; free some space and run the command again"
    if isinstance(error, OSError) and error.errno in OF_A_PATH and error.filename is not None:
        name = str(error.filename)
        shown = name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}..."
        return f"{shown!r} cannot be used: {error.strerror}"
    return None


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise Interrupted


def _fail(message: str, exit_code: int) -> NoReturn:
    error_console.print(Text.assemble(("holdfast:", "red"), f" {message}"))
    sys.exit(exit_code)
