"""
CDK app: one environment, one stack. The only reader of CDK context and of environment variables.

``cdk synth -c environment=NAME`` reads ``environments/NAME.yaml``; NAME may also be a path. Findings of the rules, and
replacements that the file does not allow, end it before anything is built. ``-c changes=unchecked`` skips the
comparison with the deployed stack.
"""

import os
import sys
from pathlib import Path

from aws_cdk import App, CloudFormationValidatePlugin, Validations

from holdfast.config import EnvironmentFileError
from holdfast.environments import NoSuchEnvironmentError, environment_file
from holdfast.validation.from_environment import load_checked
from holdfast_stacks import HyperPodStack, check_changes

ENVIRONMENTS = Path(__file__).resolve().parent / "environments"


def synthesise(app: App) -> int:
    """Synthesise the environment that the app's context names; return 2 if it cannot be."""
    name = app.node.try_get_context("environment")
    try:
        path = environment_file(name if isinstance(name, str) else "", folder=ENVIRONMENTS)
        environment, report = load_checked(path, errors_only=True)
    except NoSuchEnvironmentError as error:
        print(missing_environment(name, known=error.known), file=sys.stderr)
        return 2
    except EnvironmentFileError as error:
        print(error, file=sys.stderr)
        return 2
    errors = [str(finding) for finding in report.findings]
    if not errors and app.node.try_get_context("changes") != "unchecked":
        changes = check_changes(environment, endpoint=os.environ.get("AWS_ENDPOINT_URL"))
        errors = list(changes.errors)
        for note in changes.notes:
            print(note, file=sys.stderr)
    if errors:
        print("\n".join(errors), file=sys.stderr)
        return 2
    if os.environ.get("CDK_VALIDATION") != "false":  # cdk synth --no-validation
        Validations.of(app).add_plugins(CloudFormationValidatePlugin())
    HyperPodStack(app, environment.stack_name, environment=environment, folder=path.parent)
    app.synth()
    return 0


def missing_environment(name: object, *, known: tuple[str, ...]) -> str:
    """Return the message for an environment that is not named or does not exist."""
    given = f"environment {name!r}" if name else "no environment"
    return (
        f"got {given}; allowed: {', '.join(known)}, or the path of a YAML file; "
        f"add -c environment=NAME to the cdk command"
    )


if __name__ == "__main__":
    sys.exit(synthesise(App(analytics_reporting=False)))
