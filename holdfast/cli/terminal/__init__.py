"""Console, JSON output, progress steps, errors, exit codes, version."""

from holdfast.cli.terminal.command import FILTER, FOLLOW, JSON, OUTPUT, SINCE, TAIL, Command, command_of
from holdfast.cli.terminal.errors import CommandError, Interrupted
from holdfast.cli.terminal.output import (
    PIPE_WIDTH,
    Step,
    UncutConsole,
    console,
    error_console,
    print_json,
    print_line,
    print_output,
    step,
    stream_width,
)
from holdfast.cli.terminal.root import sudo_command
from holdfast.cli.terminal.temporary import temporary_file

__all__ = [
    "FILTER",
    "FOLLOW",
    "JSON",
    "OUTPUT",
    "PIPE_WIDTH",
    "SINCE",
    "TAIL",
    "Command",
    "CommandError",
    "Interrupted",
    "Step",
    "UncutConsole",
    "command_of",
    "console",
    "error_console",
    "print_json",
    "print_line",
    "print_output",
    "step",
    "stream_width",
    "sudo_command",
    "temporary_file",
]
