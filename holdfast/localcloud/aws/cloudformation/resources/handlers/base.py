"""Interface of resource handlers."""
# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

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
    """A resource could not be created, changed or deleted; the text is the reason in the stack's event."""


class Stopped(Exception):  # noqa: N818 - not an error: the process ends
    """The embedded AWS stops during work on a resource."""


@dataclass(frozen=True, kw_only=True)
class Made:
    physical_id: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    remark: str = ""
    """Missing parts compared with AWS; shown in the resource's last event. Default: none."""


@dataclass(frozen=True, kw_only=True)
class LocalMachine:
    """Local machine, for resources that are more than a record."""

    home: Path
    endpoint: str
    """Of the embedded AWS, for what runs on this machine."""
    runs: Callable[[str], str]
    """Kubernetes version that really runs behind an EKS cluster, such as "1.20.2"; "" for a record."""


@dataclass(frozen=True, kw_only=True)
class ResourceContext:
    client: Callable[[str], Any]
    account: str
    region: str
    stack_name: str
    stack_id: str
    logical_id: str
    pause: Callable[[float], None]
    """Sleep; raises Stopped when the process is being stopped."""
    function: Callable[[str], Properties] = lambda _: {}
    """Properties of a custom resource's function; {} if no stack made it."""
    layer: Callable[[str], Properties] = lambda _: {}
    """The same of a layer of a function."""
    machine: LocalMachine | None = None
    """Default: none, everything is a record."""
    note: Callable[[str], None] = lambda _: None
    """Record the physical id as soon as it is known, so that a failure or a kill leaves no orphan."""

    def name(self, *, length: int = 64, lower: bool = False) -> str:
        """Return a generated name: stack, logical id and a random suffix."""
        alphabet = string.ascii_lowercase + string.digits if lower else string.ascii_uppercase + string.digits
        suffix = "".join(secrets.choice(alphabet) for _ in range(12))
        room = length - len(suffix) - 2
        logical = self.logical_id[: max(room // 2, room - len(self.stack_name))]
        name = f"{self.stack_name[: room - len(logical)]}-{logical}-{suffix}"
        return name.lower() if lower else name


class ResourceHandler(ABC):
    """Makes resources of one type by calling AWS APIs."""

    type: str

    @property
    def custom_name(self) -> str:
        """Property by which users name the resource, or ""."""
        return ""

    def existing(self, context: ResourceContext, name: str) -> Made | None:
        """Return the resource that has the custom name; None if there is none, or if the service does not say."""
        return None

    @abstractmethod
    def create(self, context: ResourceContext, properties: Properties) -> Made:
        """Create the resource and wait until it is ready."""

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        """Update in place. Called only if no create-only property differs. Default: what creates it overwrites it."""
        return self.create(context, properties)

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:  # noqa: B027 - the default
        """Delete the resource and wait. A missing one is no error. Default: nothing is left."""


def gone(error: ClientError) -> bool:
    """Return True if an API error means that the resource does not exist."""
    return bool(GONE.search(error.response["Error"]["Code"]))


def ignore_gone(call: Callable[..., Any], **arguments: Any) -> Any:
    """Call; return None if the resource does not exist."""
    try:
        return call(**arguments)
    except ClientError as error:
        if gone(error):
            return None
        raise
