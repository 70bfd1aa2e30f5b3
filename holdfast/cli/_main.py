"""The ``holdfast`` command: its verbs, and what becomes of an error."""

import errno
import signal
import sys
from types import FrameType
from typing import NoReturn

import typer
from rich.text import Text

from holdfast.cli import (
    _check,
    _diff,
    _down,
    _env,
    _events,
    _images,
    _import,
    _kill_node,
    _logs,
    _plan,
    _rehearse,
    _ssh,
    _status,
    _submit,
    _up,
)
from holdfast.cli._aws import AwsError, UnreachableError
from holdfast.cli._errors import CommandError, Interrupted
from holdfast.cli._output import error_console
from holdfast.cli.jobs import CommandWithArguments, cancel, jobs
from holdfast.localcloud import LocalCloudError, ProcessError

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 + SIGINT."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Provision HyperPod clusters as code and keep training on them running.",
)
for command in (
    _check.check,
    _diff.diff,
    _plan.plan,
    _up.up,
    _down.down,
    _env.env,
    _status.status,
    jobs,
    cancel,
    _logs.logs,
    _ssh.ssh,
    _kill_node.kill_node,
    _events.events,
    _rehearse.rehearse,
):
    app.command()(command)
app.command(cls=CommandWithArguments, context_settings={"ignore_unknown_options": True})(_submit.submit)
app.command("import")(_import.import_cluster)
app.add_typer(_images.app, name="images")


def main() -> None:
    """Run the command line. A user's mistake ends with one message and exit code 2; a bug keeps its traceback."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        app(standalone_mode=True)
    except CommandError as error:
        _fail(str(error), error.exit_code)
    except (LocalCloudError, ProcessError) as error:
        _fail(str(error), 2)
    except Interrupted:
        _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        message = _known_failure(error)
        if message is None:
            raise
        _fail(message, 2)


def _known_failure(error: Exception) -> str | None:
    """Words for failures of the floors below, imported only now because they are slow to import. None for a bug."""
    from botocore.exceptions import BotoCoreError, ClientError

    from holdfast.localcloud.nodes import NodeError

    if isinstance(error, NodeError | UnreachableError):
        return str(error)
    if isinstance(error, AwsError):
        return f"AWS refused: {error}"
    if isinstance(error, ClientError | BotoCoreError):
        return f"AWS refused or did not answer: {error}"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"the disk is full: {error}; free some space and run the command again"
    return None


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Unwind once, so that everything half-made is taken down; a second Ctrl-C does not stop that."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise Interrupted


def _fail(message: str, exit_code: int) -> NoReturn:
    error_console.print(Text.assemble(("holdfast:", "red"), f" {message}"))
    sys.exit(exit_code)
