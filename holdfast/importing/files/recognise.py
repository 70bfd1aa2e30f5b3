"""Type detection of files by content: AWS's samples use many names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.importing.files.json import NotUsableError, read_json
from holdfast.importing.files.shape import problems, request_shape
from holdfast.validation.imports import request_of

ANSWER = frozenset({"ClusterArn", "ClusterStatus"})
LEGACY = frozenset({"controller_group", "worker_groups", "workload_manager"})
COMMENT = "_"
"""Prefix of remarks to readers: the service has no such member."""


@dataclass(frozen=True, kw_only=True)
class ClusterDefinition:
    request: Mapping[str, Any]
    """As CreateCluster takes it."""
    provisioning: Mapping[str, Any] | None = None
    """provisioning_parameters.json."""
    region: str | None = None
    """That of an answer of DescribeCluster. Default: the parts of the request say it"""
    account: str | None = None
    """Likewise."""


@dataclass
class _Parts:
    request: dict[str, Any] = field(default_factory=dict)
    provisioning: dict[str, Any] | None = None
    arn: str | None = None
    of: dict[str, str] = field(default_factory=dict)
    """File of each member."""


def cluster_of(*, files: Sequence[Path], name: str | None = None) -> ClusterDefinition:
    """Merge files, as `together` merges their contents."""
    return together([(str(path), read_json(path)) for path in files], name=name)


def together(values: Sequence[tuple[str, Any]], *, name: str | None = None) -> ClusterDefinition:
    """
    Merge values, whose types are detected by content.

    Args:
        values: Each with its origin.
        name: Cluster name, in place of the existing one.

    Raises:
        NotUsableError: all problems at once.
    """
    parts = _Parts()
    for origin, value in values:
        _take(origin, value, parts)
    if name is not None:
        parts.request["ClusterName"] = name
    _check(parts, [origin for origin, _ in values])
    arn = (parts.arn or "").split(":")
    region, account = (arn[3], arn[4]) if len(arn) > 4 else (None, None)
    return ClusterDefinition(request=parts.request, provisioning=parts.provisioning, region=region, account=account)


def _take(origin: str, value: Any, parts: _Parts) -> None:
    for matches, take in _KINDS:
        if matches(value):
            take(origin, value, parts)
            return
    raise NotUsableError(
        f"{origin} holds {_content(value)}; allowed: a request of CreateCluster, a list of instance groups, a "
        "VpcConfig, an Orchestrator, a list of tags, an answer of DescribeCluster, or provisioning_parameters.json"
    )


def _content(value: Any) -> str:
    items = value if isinstance(value, list) else [value]
    first = items[0] if items else None
    members = ", ".join(list(first)[:5]) if isinstance(first, dict) and first else "something else"
    return f"a list of {members}" if isinstance(value, list) else members


def _request(origin: str, value: dict[str, Any], parts: _Parts) -> None:
    for member, item in value.items():
        _set(origin, member, item, parts)


def _member(name: str) -> Callable[[str, Any, _Parts], None]:
    return lambda origin, value, parts: _set(origin, name, value, parts)


def _set(origin: str, member: str, value: Any, parts: _Parts) -> None:
    if member in parts.of and not member.startswith(COMMENT):
        raise NotUsableError(f"got {member} in {parts.of[member]} and in {origin}; allowed: one of them")
    parts.request[member], parts.of[member] = value, origin


def _answer(origin: str, value: dict[str, Any], parts: _Parts) -> None:
    arn = value["ClusterArn"]
    parts.arn = arn if isinstance(arn, str) else None
    for member in ("InstanceGroups", "RestrictedInstanceGroups"):
        if member in value and not _all_have(value[member], "InstanceGroupName"):
            raise NotUsableError(f"{origin}: {member} is no list of instance groups, as DescribeCluster answers")
    _request(origin, request_of({key: item for key, item in value.items() if key != "ResponseMetadata"}), parts)


def _provisioning(origin: str, value: dict[str, Any], parts: _Parts) -> None:
    if parts.provisioning is not None:
        raise NotUsableError(f"{origin} is a second provisioning_parameters.json; give one of them")
    wrong = list(_wrong_provisioning(value))
    if wrong:
        raise NotUsableError(f"{origin}: {'; '.join(wrong)}")
    parts.provisioning = value


def _wrong_provisioning(value: dict[str, Any]) -> Sequence[str]:
    texts = ("controller_group", "login_group", "fsx_dns_name", "fsx_mountname", "fsx_openzfs_dns_name")
    found = [f"{key} is no string" for key in texts if not isinstance(value.get(key, ""), str)]
    workers = value.get("worker_groups", [])
    if not isinstance(workers, list):
        return [*found, "worker_groups is no list"]
    for index, worker in enumerate(workers):
        where = f"worker_groups[{index}]"
        if not isinstance(worker, dict) or not isinstance(worker.get("instance_group_name"), str):
            found.append(f"{where} names no instance_group_name")
        elif not isinstance(worker.get("partition_name", ""), str):
            found.append(f"{where}.partition_name is no string")
    return found


def _check(parts: _Parts, origins: Sequence[str]) -> None:
    where = " and ".join(origins)
    if not parts.request.get("InstanceGroups") and not parts.request.get("RestrictedInstanceGroups"):
        raise NotUsableError(f"no instance groups in {where}: it is no request of CreateCluster")
    wrong = list(problems(parts.request))
    if wrong:
        raise NotUsableError(
            "\n".join([f"{where}: CreateCluster would not read it:", *(f"  {each}" for each in wrong)])
        )
    names = [group["InstanceGroupName"] for group in parts.request.get("InstanceGroups") or []]
    names += [group["InstanceGroupName"] for group in parts.request.get("RestrictedInstanceGroups") or []]
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise NotUsableError(
            f"{where}: more than one instance group has the name {', '.join(twice)}; each needs its own"
        )
    if "ClusterName" not in parts.request:
        raise NotUsableError(f"{where}: no ClusterName; add --name, such as --name my-cluster")


def _all_have(value: Any, member: str) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) and member in each for each in value)


def _only(value: Any, members: frozenset[str]) -> bool:
    keys = {key for key in value if not key.startswith(COMMENT)} if isinstance(value, dict) else set()
    return bool(keys) and keys <= members


def _is_request(value: Any) -> bool:
    return isinstance(value, dict) and bool({"InstanceGroups", "RestrictedInstanceGroups"} & set(value))


def _is_part(value: Any) -> bool:
    return _only(value, frozenset(request_shape().members))


_KINDS: Sequence[tuple[Callable[[Any], bool], Callable[[str, Any, _Parts], None]]] = (
    (lambda value: isinstance(value, dict) and set(value) >= ANSWER, _answer),
    (_is_request, _request),
    (lambda value: isinstance(value, dict) and bool(LEGACY & set(value)), _provisioning),
    (lambda value: _only(value, frozenset({"SecurityGroupIds", "Subnets"})), _member("VpcConfig")),
    (lambda value: _only(value, frozenset({"Eks", "Slurm"})), _member("Orchestrator")),
    (lambda value: _all_have(value, "InstanceGroupName"), _member("InstanceGroups")),
    (lambda value: _all_have([value], "InstanceGroupName"), lambda o, v, parts: _set(o, "InstanceGroups", [v], parts)),
    (lambda value: _all_have(value, "Key"), _member("Tags")),
    (_is_part, _request),
)
