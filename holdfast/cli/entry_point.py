"""The ``holdfast`` command: verbs, errors, exit codes."""

import atexit
import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from rich.text import Text

from holdfast.cli.commands.cluster import (
    events,
    incidents,
    inject,
    jobs,
    kill_node,
    logs,
    packages,
    rehearse,
    scale,
    ssh,
    status,
    submit,
    why,
)
from holdfast.cli.commands.deployment import down, env, images, kubernetes, up, use
from holdfast.cli.commands.environment import check, diff, explain, import_, init, plan
from holdfast.cli.deployed import AwsError, UnreachableError
from holdfast.cli.submission import CommandWithArguments
from holdfast.cli.terminal import Command, CommandError, Interrupted, error_console, installed_version
from holdfast.environments import NoSuchEnvironmentError
from holdfast.localcloud import LocalCloudError, ProcessError, from_environment
from holdfast.localcloud.home import MARKER
from holdfast.localcloud.processes import holder_of, is_going

OF_A_PATH = frozenset(
    {errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EROFS, errno.ENXIO}
)
"""Errors of a given path, or of the caller's rights."""
LONGEST_SHOWN = 80
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 + SIGINT."""


def _print_version(given: bool) -> None:  # noqa: FBT001 - as the library calls it
    if given:
        print(f"holdfast {installed_version()}")
        raise typer.Exit


app = typer.Typer(
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


_VERBS: tuple[tuple[str, Callable[..., None], str], ...] = (
    ("Environments", init.init, "holdfast init lab --name lab --region us-east-2 --yes"),
    ("Environments", check.check, "holdfast check slurm-p5"),
    ("Environments", explain.explain, "holdfast explain HF041"),
    ("Environments", diff.diff, "holdfast diff slurm-p5"),
    ("Environments", plan.plan, "holdfast plan slurm-p5 --price ec2-on-demand"),
    ("Environments", import_.import_cluster, "holdfast import --cluster my-cluster --output my-cluster.yaml"),
    ("Deployments", up.up, "sudo holdfast up local"),
    ("Deployments", use.use, "holdfast use lab"),
    ("Deployments", down.down, "sudo holdfast down"),
    ("Deployments", env.env, 'eval "$(holdfast env)"'),
    ("Cluster", status.status, "holdfast status --environment slurm-p5"),
    ("Cluster", events.events, "holdfast events --kind node_lost --since 2h"),
    ("Cluster", logs.logs, "holdfast logs --job 7 --follow"),
    ("Cluster", ssh.ssh, "sudo holdfast ssh ip-10-1-0-11 -- nvidia-smi"),
    ("Jobs", submit.submit, "holdfast submit train.sbatch --nodes=2 -- --lr 3e-4"),
    ("Jobs", packages.packages, "sudo holdfast packages requirements.txt"),
    ("Jobs", jobs.jobs, "holdfast jobs --failed --days 30"),
    ("Jobs", why.why, "holdfast why 7"),
    ("Jobs", jobs.cancel, "holdfast cancel 7"),
    ("Jobs", scale.scale, "holdfast scale 7 4"),
    ("Faults and recovery", incidents.incidents, "holdfast incidents --since 1d --html incidents.html"),
    ("Faults and recovery", kill_node.kill_node, "sudo holdfast kill-node ip-10-1-0-11 --fault freeze"),
    ("Faults and recovery", inject.inject, "sudo holdfast inject ip-10-1-0-11 xid-79 --for 60"),
    ("Faults and recovery", rehearse.rehearse, "sudo holdfast rehearse train.sbatch"),
)
_SETTINGS: dict[Callable[..., None], dict[str, Any]] = {
    import_.import_cluster: {"name": "import"},
    packages.packages: {"cls": CommandWithArguments},
    submit.submit: {"cls": CommandWithArguments, "context_settings": {"ignore_unknown_options": True}},
}
for panel, run, example in _VERBS:
    settings = {"cls": Command, **_SETTINGS.get(run, {})}
    app.command(rich_help_panel=panel, epilog=f"Example: {example}", **settings)(run)
app.add_typer(images.app, name="images", rich_help_panel="Local cloud")
app.add_typer(kubernetes.app, name="kubernetes", rich_help_panel="Local cloud")


def main() -> None:
    """Run the command line. User errors exit with 2 and one message; bugs keep their traceback."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    # What was read may hold halves of characters, and a terminal may know few: shown escaped, as on standard error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # Python takes handlers away before it ends: what was said holds, and nothing is left to interrupt.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    home = _claimed_home()
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
    with contextlib.suppress(LocalCloudError, OSError):
        local = from_environment()
        return local.home if local.is_claimed() and not is_going(local.home) else None
    return None


def _taken_down(home: Path | None) -> str:
    if home is None or ((home / MARKER).exists() and not is_going(home)):
        return ""
    holder = holder_of(home)
    if holder is not None and holder.pid == os.getpid():
        return ""
    by = f" by {holder}" if holder is not None else ""
    return f"the local cloud in {home} was taken down{by} while this command ran; restart it with: holdfast up ENV"


def _known_failure(error: Exception) -> str | None:
    if isinstance(error, CommandError | NoSuchEnvironmentError | LocalCloudError | ProcessError):
        return str(error)
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    from holdfast.localcloud.nodes import NodeError

    if isinstance(error, NodeError | UnreachableError):
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
