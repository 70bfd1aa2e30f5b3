"""State of a cluster at its import, kept in one line of the file, and changes since."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.engine import declare
from holdfast.validation.imports.request import request_of
from holdfast.validation.model import Finding

Describe = Callable[[str], Mapping[str, Any] | None]
"""Response of DescribeCluster for an ARN; None if there is no such cluster, UNRESOLVED if access is denied."""

CODE = "HF930"
CLUSTER = "."
"""Stands for the cluster without its groups; no group has such a name."""
DIGITS = 8

declare(
    CODE,
    severity="warning",
    title="A cluster that was imported is as it was",
    source="SageMaker API, DescribeCluster",
    explanation="""
    `holdfast import` writes the state of the cluster into the file. If the cluster has changed since, the
    file describes its former state: deployed beside it, the file creates another cluster; deployed in its
    place, it reverts the change. Import it again. Once the file is what shall be, remove the comment "As it was".
    """,
)


@dataclass(frozen=True, kw_only=True)
class Origin:
    arn: str
    digests: Mapping[str, str]
    """Of each group by its name, and of the rest of the cluster."""

    def __str__(self) -> str:
        return " ".join([self.arn, *(f"{name}={digest}" for name, digest in self.digests.items())])


def origin_of(described: Mapping[str, Any]) -> Origin:
    request = request_of({key: value for key, value in described.items() if key != "ResponseMetadata"})
    groups = [*(request.pop("InstanceGroups", None) or []), *(request.pop("RestrictedInstanceGroups", None) or [])]
    digests = {group["InstanceGroupName"]: _digest(group) for group in groups}
    return Origin(arn=described["ClusterArn"], digests={CLUSTER: _digest(request), **digests})


def read_origin(text: str) -> Origin | None:
    """Parse the output of ``str``; None if invalid."""
    arn, *pairs = text.split() or [""]
    digests = dict(pair.partition("=")[::2] for pair in pairs)
    if not arn.startswith("arn:") or arn.count(":") != 5 or not all(digests.values()):
        return None
    return Origin(arn=arn, digests=digests)


def changes_since(origin: Origin, describe: Describe | None, *, line: int) -> Iterator[Finding]:
    """
    One finding, if the cluster changed or is unknown.

    Args:
        describe: Query of the account. None: not checked.
        line: Of the state in the file.
    """
    described: Any = UNRESOLVED if describe is None else describe(origin.arn)
    if described is UNRESOLVED:
        message = "A cluster that was imported is as it was: not checked, needs AWS credentials (--account)"
        yield _finding(message, "run it with credentials of the account", line, severity="not-checked")
        return
    if described is None:
        return
    now, then = origin_of(described).digests, origin.digests
    reported = [f"group {name} was removed" for name in then if name not in now]
    reported += [f"group {name} is new" for name in now if name not in then]
    changed = [name for name in then if now.get(name, then[name]) != then[name]]
    reported += ["the cluster's own settings" if name == CLUSTER else f"group {name}" for name in changed]
    if reported:
        name = described["ClusterName"]
        message = f"cluster {name} has changed since it was imported: {', '.join(reported)}"
        yield _finding(message, "import it again; once this file is what shall be, remove the comment", line)


def _finding(message: str, fix: str, line: int, *, severity: Any = "warning") -> Finding:
    return Finding(code=CODE, severity=severity, path="cluster", message=message, fix=fix, line=line)


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
