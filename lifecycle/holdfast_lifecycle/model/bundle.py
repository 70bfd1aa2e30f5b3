"""Deployment settings in the bundle: variables for jobs, mounts, a database; absent files mean no setting."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Optional

LUSTRE, OPENZFS = "lustre", "openzfs"
_AGAIN = "deploy the lifecycle bundle again"


class LifecycleError(Exception):
    """The lifecycle cannot start; the message has the cause and what to do."""


class Mount(NamedTuple):
    """File system mounted by this node, since HyperPod mounts nothing where OnCreate runs."""

    kind: str
    dns_name: str
    mount_name: str
    """Of Lustre; empty for OpenZFS."""
    path: str


class AccountingDatabase(NamedTuple):
    endpoint: str
    port: int
    secret_arn: str
    """Of Secrets Manager: a JSON object with ``username`` and ``password``."""
    tls: bool = False
    """Whether the server takes nothing else. Default: false, the client library decides"""


class Health(NamedTuple):
    enabled: bool = False
    """Default: false, as with external bundles"""
    acts: bool = False
    """True: it requests repairs. False: it only reports them. Default: false"""
    breaker_share: float = 0.1
    checks: tuple[str, ...] = ()
    """File names below ``checks`` in the bundle. Default: none"""
    burn_in_s: float = 0.0
    """Default: 0, not at all"""
    metrics_port: int = 0
    """Default: 0, metrics are not served"""
    unit: bool = True
    """Whether systemd runs the agent; where pods do, it only ships their events. Default: true"""


def read_json(path: Path, action: str = _AGAIN) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise LifecycleError(f"cannot read {path}: {error}; {action}") from error


def job_environment(bundle: Path) -> dict[str, str]:
    path = bundle / "job_environment.json"
    if not path.exists():
        return {}
    found = read_json(path)
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise LifecycleError(f"{path} is not an object of strings; {_AGAIN}")
    return found


def health(settings: Mapping[str, Any]) -> Health:
    """From the section ``health`` of config.json."""
    if "health" not in settings:
        return Health()
    found = settings["health"]
    mode = found["mode"]
    if mode not in ("observe", "act"):
        raise ValueError(f"health.mode, got {mode!r}, allowed: observe, act")
    return Health(
        enabled=bool(found["enabled"]),
        acts=mode == "act",
        breaker_share=float(found["breaker_share"]),
        checks=tuple(str(name) for name in found["checks"]),
        burn_in_s=float(found["burn_in_seconds"]),
        metrics_port=int(found.get("metrics_port") or 0),
        unit=bool(found.get("unit", True)),
    )


def mounts(bundle: Path, *, instance_group: str) -> tuple[Mount, ...]:
    """From mounts.json, or the group's own file if the group was added to the cluster later."""
    path = bundle / f"mounts.{instance_group}.json"
    if not path.exists():
        path = bundle / "mounts.json"
    if not path.exists():
        return ()
    found = read_json(path)
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise LifecycleError(f"{path} is not a list of objects; {_AGAIN}")
    try:
        return tuple(_mount(item) for item in found if item["instance_group"] == instance_group)
    except (KeyError, ValueError) as error:
        raise LifecycleError(f"{path} lacks or misspells {error}; {_AGAIN}") from error


def _mount(item: Mapping[str, Any]) -> Mount:
    kind, path = str(item["type"]), str(item["mount_path"])
    if kind not in (LUSTRE, OPENZFS):
        raise ValueError(f"type, got {kind!r}, allowed: {LUSTRE}, {OPENZFS}")
    if not path.startswith("/") or ".." in path or any(letter.isspace() for letter in path) or path == "/":
        raise ValueError(f"mount_path, got {path!r}, allowed: an absolute path without blanks or '..'")
    return Mount(
        kind=kind,
        dns_name=str(item["dns_name"]),
        mount_name=str(item["mount_name"]) if kind == LUSTRE else "",
        path=path,
    )


def remote_write_url(bundle: Path) -> str:
    """From metrics.json; empty: metrics are not sent."""
    path = bundle / "metrics.json"
    if not path.exists():
        return ""
    found = read_json(path)
    url = found.get("remote_write_url") if isinstance(found, dict) else None
    if not isinstance(url, str) or not url.startswith(("https://", "http://")):
        raise LifecycleError(f"{path} lacks or misspells remote_write_url, a URL; {_AGAIN}")
    return url


def accounting_database(bundle: Path) -> Optional[AccountingDatabase]:
    """From accounting.json; None: the controller's MariaDB."""
    path = bundle / "accounting.json"
    if not path.exists():
        return None
    found = read_json(path)
    try:
        return AccountingDatabase(
            endpoint=str(found["endpoint"]),
            port=int(found.get("port", 3306)),
            secret_arn=str(found["secret_arn"]),
            tls=bool(found.get("tls", False)),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LifecycleError(f"{path} lacks or misspells {error}; {_AGAIN}") from error
