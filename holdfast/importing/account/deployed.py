"""Environment of a deployed stack, from its template in CloudFormation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.updates import environment_of

NOTHING_DEPLOYED = ("REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED", "DELETE_COMPLETE")


@dataclass(frozen=True, kw_only=True)
class DeployedStack:
    """
    Result of the request.

    ``read``: environment found. ``absent``: no such stack. ``unmarked``: a stack without an environment in its
    template.
    ``not checked``: CloudFormation did not answer.
    """

    state: Literal["read", "absent", "unmarked", "not checked"]
    environment: Mapping[str, Any] | None = None
    why: str = ""
    stack_status: str = ""
    """CloudFormation's. Default: none, there is no stack or nothing was asked"""


def deployed_environment(
    *, stack_name: str, region: str, client: Mapping[str, str] | None = None, timeout_s: float = 3.0
) -> DeployedStack:
    """
    Return the environment of a stack.

    Args:
        client: botocore's arguments for another AWS, ``endpoint_url`` and its keys. Default: that of
            AWS_ENDPOINT_URL, or else AWS itself with the caller's credentials.
        timeout_s: Seconds to wait for a connection, and for an answer. Default: 3.0
    """
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    try:
        asked = aws_client("cloudformation", region=region, arguments=client or {}, timeout_s=timeout_s)
        status = asked.describe_stacks(StackName=stack_name)["Stacks"][0]["StackStatus"]
        if status in NOTHING_DEPLOYED:
            return DeployedStack(state="absent", why=f"stack {stack_name} is in {status}: nothing of it is deployed")
        template = asked.get_template(StackName=stack_name)["TemplateBody"]
    except ClientError as error:
        if "does not exist" in str(error):
            return DeployedStack(state="absent", why=f"there is no stack {stack_name} in {region}")
        return DeployedStack(state="not checked", why=f"AWS refused: {error}")
    except NoCredentialsError:
        return DeployedStack(state="not checked", why="got no AWS credentials; log in, or set AWS_PROFILE")
    except BotoCoreError as error:
        return DeployedStack(state="not checked", why=f"AWS did not answer: {error}")
    environment = environment_of(template) if isinstance(template, Mapping) else None
    if environment is None:
        why = f"stack {stack_name} was deployed without its environment in the template's metadata"
        return DeployedStack(state="unmarked", why=why, stack_status=status)
    return DeployedStack(state="read", environment=environment, stack_status=status)


def aws_client(service: str, *, region: str, arguments: Mapping[str, str], timeout_s: float) -> Any:
    import botocore.session
    from botocore.config import Config

    config = Config(connect_timeout=timeout_s, read_timeout=timeout_s, retries={"total_max_attempts": 1})
    session = botocore.session.get_session()
    return session.create_client(service, region_name=region, config=config, **arguments)
