"""
CDK app: one environment, one stack. The only reader of CDK context and of environment variables.

``cdk synth -c environment=NAME`` reads ``environments/NAME.yaml``; NAME may also be a path. Findings of the rules, and
replacements that the file does not allow, end it before anything is built. ``-c changes=unchecked`` skips the
comparison with the deployed stack.
"""

import os
from pathlib import Path

from aws_cdk import App, CloudFormationValidatePlugin, Validations

from holdfast_stacks import HyperPodStack, environment_of

ENVIRONMENTS = Path(__file__).resolve().parent / "environments"


def synthesise(app: App) -> None:
    """Synthesise the environment that the app's context names. Raises: SystemExit: 2 if it cannot be."""
    environment, path = environment_of(app, folder=ENVIRONMENTS)
    if os.environ.get("CDK_VALIDATION") != "false":  # cdk synth --no-validation
        Validations.of(app).add_plugins(CloudFormationValidatePlugin())
    HyperPodStack(app, environment.stack_name, environment=environment, folder=path.parent)
    app.synth()


if __name__ == "__main__":
    synthesise(App(analytics_reporting=False))
