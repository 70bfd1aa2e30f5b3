"""
The CDK app: one environment, one stack. The only reader of CDK context and of environment variables.

``cdk synth -c environment=NAME`` reads ``environments/NAME.yaml``; NAME may also be a path. What the rules find, and
what a change would replace without being allowed to, is said before anything is built. ``-c changes=unchecked`` asks
nobody what is deployed.
"""

import gc
import os
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
    from holdfast_stacks import HyperPodStack, environment_of

ENVIRONMENTS = Path(__file__).resolve().parent / "environments"


def main() -> None:
    """Synthesise the environment that the context names; exits with 2 when it cannot be."""
    app = App(analytics_reporting=False)
    environment, path = environment_of(app, folder=ENVIRONMENTS)
    if validator is not None:
        Validations.of(app).add_plugins(validator.result())
    HyperPodStack(app, environment.stack_name, environment=environment, folder=path.parent)
    app.synth()


if __name__ == "__main__":
    try:
        main()
    finally:
        gc.freeze()
