"""
Context of a node: lifecycle configuration, and its place in resource_config.json.

A node that cannot find itself stops at once: guessing a role would be worse.
"""

import fcntl
import os
import socket
import struct
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Optional

from holdfast_common import EventLog, log_of_jobs
from holdfast_lifecycle.model.bundle import (
    AccountingDatabase,
    Health,
    LifecycleError,
    Mount,
    accounting_database,
    health,
    job_environment,
    mounts,
    read_json,
    remote_write_url,
)

DEFAULT_RESOURCE_CONFIG = "/opt/ml/config/resource_config.json"
ON_CREATE, ON_INIT_COMPLETE = "OnCreate", "OnInitComplete"
HOOKS = (ON_CREATE, ON_INIT_COMPLETE)
_SCRIPTS = {ON_CREATE: "on_create.sh", ON_INIT_COMPLETE: "on_init_complete.sh"}


class User(NamedTuple):
    name: str
    uid: int
    home: str = ""
    """Default: on a shared file system where the node has one"""
    groups: tuple[str, ...] = ()
    """Further ones. Default: none"""


class Context(NamedTuple):
    """Input of steps. ``root`` is on a node and a scratch folder in tests."""

    root: Path
    bundle: Path
    """Where holdfast_common and holdfast_runtime lie beside this package."""
    cluster_name: str
    instance_group: str
    instance_id: str
    address: str
    role: str
    """Slurm's node type; "Kubernetes" on EKS."""
    controller_address: str
    """Empty on EKS."""
    users: tuple[User, ...]
    fsx_mount_path: str
    """Empty on a node whose group mounts no shared file system."""
    events_path: str
    scripts: tuple[str, ...] = ()
    """The user's own, below ``scripts`` in the bundle. Default: none"""
    training_image: str = ""
    """What jobs run in, by a reference that stays what it is. Default: empty, jobs choose for themselves"""
    preload: tuple[str, ...] = ()
    """Folders of the shared file system whose contents are fetched from S3 at once. Default: none"""
    job_environment: Mapping[str, str] = MappingProxyType({})
    """Variables for jobs that only the deployment knew. Default: none"""
    hook: str = ON_CREATE
    """OnCreate: HyperPod has started nothing on a Slurm node. OnInitComplete: it has, and mounted. Default: OnCreate"""
    mounts: tuple[Mount, ...] = ()
    """What this node mounts itself. Default: none"""
    instance_type: str = ""
    """Such as ml.p5.48xlarge. Default: unknown"""
    has_volume: bool = False
    """Whether the group asks for a volume besides the root volume. Default: not known to"""
    lustre_efa: bool = False
    """Whether pods mount a file system that has EFA. Default: false"""
    accounting: Optional[AccountingDatabase] = None
    """Default: the MariaDB of the controller."""
    health: Health = Health()
    """Default: no agent, and no burn-in"""
    lending: bool = False
    """Whether the controller's agent takes nodes of elastic jobs back for jobs that wait. Default: false"""
    home_mount_path: str = ""
    """Where the file system of home directories is mounted. Default: there is none"""
    remote_write_url: str = ""
    """Where the agent sends its numbers. Default: empty, nowhere"""

    @property
    def job_events_path(self) -> str:
        return str(log_of_jobs(self.events_path))

    @property
    def script(self) -> str:
        return _SCRIPTS[self.hook]

    @property
    def starts_slurm(self) -> bool:
        """True if the steps start the daemons: HyperPod starts none where OnCreate runs."""
        return self.hook == ON_CREATE

    def path(self, absolute: str) -> Path:
        return self.root / absolute.lstrip("/")

    def event_log(self) -> EventLog:
        return EventLog(
            path=self.path(self.events_path), source="lifecycle", cluster=self.cluster_name, node=self.instance_id
        )


def load_context(
    *,
    config: Path,
    hook: str = ON_CREATE,
    resource_config: Optional[Path] = None,
    addresses: Optional[Collection[str]] = None,
    root: Path = Path("/"),
) -> Context:
    if resource_config is None:
        resource_config = Path(os.environ.get("SAGEMAKER_RESOURCE_CONFIG_PATH", DEFAULT_RESOURCE_CONFIG))
    settings = read_json(config, "the lifecycle bundle is incomplete; deploy it again")
    resources = read_json(resource_config, "HyperPod writes it; set SAGEMAKER_RESOURCE_CONFIG_PATH if it is elsewhere")
    own = set(own_addresses() if addresses is None else addresses)
    try:
        users = tuple(_user(user) for user in settings["users"])
        mount_path, events_path = str(settings["fsx_mount_path"]), str(settings["events_path"])
        cluster_name, slurm = str(settings["cluster_name"]), settings.get("orchestrator", "slurm") == "slurm"
        scripts = tuple(str(name) for name in settings.get("scripts", ()))
        preload = tuple(str(path) for path in settings.get("preload", ()))
        mounting = settings.get("fsx_instance_groups")
        with_volume = settings.get("volume_instance_groups", ())
        of_health = health(settings)
    except (KeyError, TypeError, ValueError) as error:
        raise LifecycleError(f"{config} lacks or misspells {error}; deploy the lifecycle bundle again") from error
    group, instance = _find_self(resources, own, resource_config)
    name = str(group["Name"])
    roles = {str(item["Name"]): _role(item) if slurm else "Kubernetes" for item in resources["InstanceGroups"]}
    if slurm and "Controller" not in roles.values():
        raise LifecycleError(
            f"no instance group of {resource_config} is the Slurm controller (groups: {', '.join(roles)});"
            " give one group the node type Controller, or name it controller"
        )
    controllers = [
        str(node["CustomerIpAddress"])
        for item in resources["InstanceGroups"]
        if roles[str(item["Name"])] == "Controller"
        for node in item.get("Instances") or []
    ]
    return Context(
        root=root,
        bundle=config.parent,
        cluster_name=cluster_name,
        instance_group=name,
        instance_id=str(instance["InstanceId"]),
        address=str(instance["CustomerIpAddress"]),
        role=roles[name],
        controller_address=controllers[0] if controllers else "",
        users=users,
        fsx_mount_path=mount_path if mounting is None or name in mounting else "",
        events_path=events_path,
        scripts=scripts,
        training_image=str(settings.get("training_image", "")),
        preload=preload,
        job_environment=job_environment(config.parent),
        hook=hook,
        instance_type=str(group.get("InstanceType", "")),
        has_volume=name in with_volume,
        lustre_efa=bool(settings.get("lustre_efa", False)),
        mounts=mounts(config.parent, instance_group=name),
        accounting=accounting_database(config.parent),
        health=of_health,
        lending=bool(settings.get("lending", False)),
        home_mount_path=str(settings.get("home_mount_path", "")),
        remote_write_url=remote_write_url(config.parent),
    )


def _user(given: Any) -> User:
    groups = tuple(str(group) for group in given.get("groups", ()))
    return User(name=str(given["name"]), uid=int(given["uid"]), home=str(given.get("home") or ""), groups=groups)


def _find_self(resources: Any, own: Collection[str], path: Path) -> tuple[Any, Any]:
    known: list[str] = []
    try:
        for group in resources["InstanceGroups"]:
            for instance in group.get("Instances") or []:
                known.append(str(instance["CustomerIpAddress"]))
                if instance["CustomerIpAddress"] in own:
                    return group, instance
    except (KeyError, TypeError) as error:
        raise LifecycleError(
            f"{path} is not a HyperPod resource configuration: {error!r} is missing or wrong"
        ) from error
    raise LifecycleError(
        f"this node has the addresses {', '.join(sorted(own)) or 'none'}, but {path} has only"
        f" {', '.join(known) or 'none'}; the file is stale or belongs to another node"
    )


def _role(group: Any) -> str:
    """Slurm node type of the group; by its name in older files."""
    slurm = group.get("SlurmConfig") or {}
    if slurm.get("NodeType"):
        return str(slurm["NodeType"])
    name = str(group["Name"]).lower()
    return "Controller" if "controller" in name else "Login" if "login" in name else "Compute"


def own_addresses() -> set[str]:
    return {address for _, address in interfaces()} - {"127.0.0.1"}


def interfaces() -> "Iterator[tuple[str, str]]":
    """Names and IPv4 addresses of this node's interfaces, from the kernel: no name lookup, network or program."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe, 0x8915, request)  # SIOCGIFADDR
            except OSError:
                continue  # an interface without an address
            yield name, socket.inet_ntoa(answer[20:24])
