"""An environment file as its model, or its problems as an error of the command. Its model is slow to load."""

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.terminal import CommandError

if TYPE_CHECKING:
    from holdfast.config import Environment


def read_definition(path: Path) -> "Environment":
    """
    What a file describes.

    Raises:
        CommandError: it describes no environment; the message has every problem with its line.
    """
    from holdfast.config import EnvironmentFileError, load

    try:
        return load(path)
    except EnvironmentFileError as error:
        raise CommandError(str(error)) from None


def judged_definition(path: Path) -> "Environment":
    """
    What a file describes, where no rule finds an error in it.

    Raises:
        CommandError: it describes no environment, or one with errors.
    """
    from holdfast.config import EnvironmentFileError
    from holdfast.validation.from_environment import load_checked

    try:
        environment, report = load_checked(path, errors_only=True)
    except EnvironmentFileError as error:
        raise CommandError(str(error)) from None
    if report.findings:
        raise CommandError("\n".join(map(str, report.findings)))
    return environment
