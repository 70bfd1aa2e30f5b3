"""Environment file as a model, or its problems as CommandError. The model is slow to load."""

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.terminal import CommandError

if TYPE_CHECKING:
    from holdfast.config import Environment


def read_definition(path: Path) -> "Environment":
    """Load a file. Raises: CommandError: all problems of the file, each with its line."""
    from holdfast.config import EnvironmentFileError, load

    try:
        return load(path)
    except EnvironmentFileError as error:
        raise CommandError(str(error)) from None


def judged_definition(path: Path) -> "Environment":
    """Load a file and check it. Raises: CommandError: problems, or findings of severity error."""
    from holdfast.config import EnvironmentFileError
    from holdfast.validation.from_environment import load_checked

    try:
        environment, report = load_checked(path, errors_only=True)
    except EnvironmentFileError as error:
        raise CommandError(str(error)) from None
    if report.findings:
        raise CommandError("\n".join(map(str, report.findings)))
    return environment
