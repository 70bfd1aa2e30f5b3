"""Existing resources of an environment."""

from dataclasses import dataclass

from holdfast.validation.model.item import Item


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Choice(Item):
    """Resource given in one of two ways: new, or existing."""

    what: str
    """Such as ``a file system``."""
    other: str
    """The setting of the second way: ``existing``, ``s3_uri``."""
    there: bool
    """Whether the second way is written."""
    made: tuple[str, ...]
    """What is written of the first way."""
    lacking: tuple[str, ...]
    """Missing settings of the first way."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Reference(Item):
    """ARN or DNS name in an environment."""

    what: str
    """Such as ``the execution role``."""
    name: str
    region: str | None
    """None: it has none, as a role."""
    account: str | None
    """None: it has none, as a DNS name; or any account is allowed, as for a repository."""
    why: str
    """Why it cannot be of another region or account."""
    beginning: str = ""
    """What the name begins with: the id of its file system."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Scripts(Item):
    bucket: str
    role: str | None
    """The role of nodes, where it is one that is there already and nothing can be added to."""
    mode: str | None
    """What their hook is made for: ``custom`` or ``extension``; None: they are Holdfast's own, for either."""
    required_mode: str | None = None
    """Mode set for the group; None: not set."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FileSystemId(Item):
    id: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BucketName(Item):
    name: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Existing(Item):
    choices: tuple[Choice, ...] = ()
    references: tuple[Reference, ...] = ()
    scripts: tuple[Scripts, ...] = ()
    needs_vpc: tuple[str, ...] = ()
    """What has to be made in the VPC of an existing network."""
    has_vpc: bool = True
    """True if that VPC is named."""
    roles: tuple[str, ...] = ()
    """ARNs of execution roles."""
    eks_cluster: str | None = None
    """Its name."""
    file_systems: tuple[FileSystemId, ...] = ()
    buckets: tuple[BucketName, ...] = ()
    addons: tuple[str, ...] = ()
    """Add-ons that are made on the EKS cluster."""
