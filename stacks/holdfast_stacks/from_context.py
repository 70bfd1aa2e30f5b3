"""The environment that the context of a CDK app names, judged before anything is built."""

import os
import sys
from pathlib import Path
from typing import NoReturn

from aws_cdk import App

from holdfast.config import Environment, EnvironmentFileError
from holdfast.environments import NoSuchEnvironmentError, environment_file
from holdfast.validation.from_environment import load_checked
from holdfast_stacks.guard import check_changes


def environment_of(app: App, *, folder: Path) -> tuple[Environment, Path]:
    """
    Return the environment that ``-c environment=NAME`` names, and its file.

    Exits with 2, and with every problem on standard error, if the environment does not exist, if rules find errors in
    it, or if it would replace what holds data or nodes. ``-c changes=unchecked`` skips the last check, which asks AWS
    for the deployed stack.

    Args:
        folder: Folder with the environment files; NAME may also be a path.
    """
    name = app.node.try_get_context("environment")
    try:
        path = environment_file(name if isinstance(name, str) else "", folder=folder)
        environment, report = load_checked(path, errors_only=True)
    except NoSuchEnvironmentError as error:
        given = f"environment {name!r}" if name else "no environment"
        _refuse(
            f"got {given}; allowed: {', '.join(error.known)}, or the path of a YAML file; "
            f"add -c environment=NAME to the cdk command"
        )
    except EnvironmentFileError as error:
        _refuse(str(error))
    if report.findings:
        _refuse(*map(str, report.findings))
    if app.node.try_get_context("changes") != "unchecked":
        changes = check_changes(environment, endpoint=os.environ.get("AWS_ENDPOINT_URL"))
        for note in changes.notes:
            print(note, file=sys.stderr)
        if changes.errors:
            _refuse(*changes.errors)
    return environment, path


def _refuse(*problems: str) -> NoReturn:
    print("\n".join(problems), file=sys.stderr)
    sys.exit(2)
