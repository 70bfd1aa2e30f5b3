"""What every resource handler is given and must give back."""

import re
import secrets
import string
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

Properties = dict[str, Any]

GONE = re.compile(r"NotFound|NoSuch|DoesNotExist|NotExist|ResourceNotFound|NonExistent")


class ResourceError(Exception):
    """A resource could not be made, changed or deleted; the text is what the stack's event says."""


class Stopped(Exception):  # noqa: N818 - not an error: the process ends
    """The embedded AWS is being stopped while a resource is worked on."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """What a handler made: the value of Ref, and of Fn::GetAtt."""

    physical_id: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    remark: str = ""
    """What of it is not here although it would be on AWS. Default: nothing; the event of its completion says it."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a resource needs of this machine to be more than a record."""

    home: Path
    endpoint: str
    """Of the embedded AWS, for what runs on this machine."""
    runs: Callable[[str], str]
    """The version of Kubernetes that really runs behind an EKS cluster, such as "1.20.2"; "" behind a mere record."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """Where and for whom a resource is made."""

    client: Callable[[str], Any]
    account: str
    region: str
    stack_name: str
    stack_id: str
    logical_id: str
    pause: Callable[[float], None]
    """Sleep; raises Stopped when the process is being stopped."""
    function: Callable[[str], Properties] = lambda _: {}
    """The properties of a function that a custom resource names; {} when no stack has made it."""
    layer: Callable[[str], Properties] = lambda _: {}
    """The same of a layer of a function."""
    machine: Machine | None = None
    """Default: none, everything is a record."""
    note: Callable[[str], None] = lambda _: None
    """Tell the physical id as soon as it is known, so that a failure or a kill after that leaves no orphan."""

    def name(self, *, length: int = 64, lower: bool = False) -> str:
        """A name of CloudFormation's own making: stack, logical id and a random suffix."""
        alphabet = string.ascii_lowercase + string.digits if lower else string.ascii_uppercase + string.digits
        suffix = "".join(secrets.choice(alphabet) for _ in range(12))
        room = length - len(suffix) - 2
        logical = self.logical_id[: max(room // 2, room - len(self.stack_name))]
        name = f"{self.stack_name[: room - len(logical)]}-{logical}-{suffix}"
        return name.lower() if lower else name


class Handler(ABC):
    """Makes resources of one type by calling AWS APIs."""

    type: str

    @property
    def custom_name(self) -> str:
        """Property by which the user names the resource; "" when there is none."""
        return ""

    @abstractmethod
    def create(self, context: Context, properties: Properties) -> Made:
        """Make it and wait until it works."""

    @abstractmethod
    def update(self, context: Context, made: Made, properties: Properties, old: Properties) -> Made:
        """Change it in place. Called only when no create-only property differs."""

    @abstractmethod
    def delete(self, context: Context, made: Made, properties: Properties) -> None:
        """Delete it and wait until it is gone. One that is gone already is no error."""


def gone(error: ClientError) -> bool:
    """Whether an API error says that the resource does not exist."""
    return bool(GONE.search(error.response["Error"]["Code"]))


def ignore_gone(call: Callable[..., Any], **arguments: Any) -> Any:
    """Call; None when the thing does not exist."""
    try:
        return call(**arguments)
    except ClientError as error:
        if gone(error):
            return None
        raise
