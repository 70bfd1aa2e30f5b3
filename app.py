"""
The CDK app: one environment, one stack. The only reader of CDK context and of environment variables.

``cdk synth -c environment=NAME`` reads ``environments/NAME.yaml``; NAME may also be a path. What the rules find, and
what a change would replace without being allowed to, is said before anything is built. ``-c changes=unchecked`` asks
nobody what is deployed.
"""

import gc
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# A program that ends in seconds: looking for garbage among all classes of the CDK, as it runs and once more at its end,
# would be a tenth of its time or more.
gc.disable()

from aws_cdk import App, CloudFormationValidatePlugin, Validations  # noqa: E402

VALIDATION = os.environ.get("CDK_VALIDATION") != "false"  # cdk synth --no-validation

with ThreadPoolExecutor(max_workers=1) as node:
    # The validator that the CDK gives every app takes Node as long to make as Python needs to load what follows.
    # Only one at a time may talk to Node: what is loaded here asks it nothing.
    validator = node.submit(CloudFormationValidatePlugin) if VALIDATION else None
    from holdfast.config import EnvironmentFileError
    from holdfast.environments import NoSuchEnvironmentError, environment_file
    from holdfast.validation.from_environment import load_checked
    from holdfast_stacks import HyperPodStack, check_changes

ENVIRONMENTS = Path(__file__).resolve().parent / "environments"


def main() -> int:
    """Synthesise the environment that the context names; 2 when it cannot be."""
    app = App(analytics_reporting=False)
    name = app.node.try_get_context("environment")
    try:
        path = environment_file(name if isinstance(name, str) else "", folder=ENVIRONMENTS)
        environment, report = load_checked(path, errors_only=True)
    except NoSuchEnvironmentError as error:
        print(told_of(name, known=error.known), file=sys.stderr)
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
    if validator is not None:
        Validations.of(app).add_plugins(validator.result())
    HyperPodStack(app, environment.stack_name, environment=environment, folder=path.parent)
    app.synth()
    return 0


def told_of(name: object, *, known: tuple[str, ...]) -> str:
    """What to do about an environment that was not named, or that does not exist."""
    given = f"environment {name!r}" if name else "no environment"
    return (
        f"got {given}; allowed: {', '.join(known)}, or the path of a YAML file; "
        f"add -c environment=NAME to the cdk command"
    )


if __name__ == "__main__":
    status = main()
    gc.freeze()
    sys.exit(status)
