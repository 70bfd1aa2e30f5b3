"""Configuration: one JSON file and ``--set KEY=VALUE``; all mistakes are reported at once."""

import json
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

AUTO = "auto"
DEFAULT_PATH = "/etc/holdfast/agent.json"


class ConfigurationError(Exception):
    """Invalid configuration: one message per mistake."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class Key(NamedTuple):
    name: str
    help: str
    choices: "tuple[str, ...]" = ()
    least: float = 0.0
    most: float = 0.0


class Configuration(NamedTuple):
    """
    All keys with their defaults; the type of a field is the type of its value.

    Not a dataclass, so that `status` starts fast.
    """

    kernel_log_path: str = "/dev/kmsg"
    events_path: str = "/var/log/holdfast/events.jsonl"
    state_path: str = "/var/lib/holdfast-agent/state.json"
    recording_path: str = ""
    socket_path: str = "/run/holdfast/agent.sock"
    status_path: str = "/run/holdfast/agent-status.sock"
    remedies_mode: str = "observe"
    remedies_way: str = "none"
    remedies_breaker_share: float = 0.1
    metrics_address: str = "127.0.0.1"
    metrics_port: int = 0
    metrics_token_path: str = "/var/lib/holdfast-agent/metrics.token"  # noqa: S105 - a path
    metrics_remote_write_url: str = ""
    metrics_interval_s: float = 30.0
    controller_enabled: bool = False
    lending_enabled: bool = False
    lending_notice_s: float = 60.0
    checks_directory: str = "/etc/holdfast/checks"
    burn_in_seconds: float = 5.0
    burn_in_repeat_s: float = 3600.0
    cluster_name: str = ""
    cluster_orchestrator: str = ""
    node_instance_id: str = ""
    node_host: str = ""
    mounts_paths: str = AUTO
    disks_paths: str = AUTO
    nvml_library: str = "libnvidia-ml.so.1"
    gpus_expected: int = 0
    shipping_enabled: bool = False
    fabric_root: str = "/sys/class/infiniband"
    hma_path: str = ""

    def listed(self, value: str) -> "Optional[list[str]]":
        return None if value == AUTO else [item.strip() for item in value.split(",") if item.strip()]


KEYS = {
    "kernel_log_path": Key("kernel_log.path", "kernel log: device or file"),
    "events_path": Key("events.path", "event log; the events of jobs are in `jobs/` beside it"),
    "state_path": Key("state.path", "state file of the agent; its lock is beside it"),
    "recording_path": Key("recording.path", "recording of signals for `replay`, at most 16 MiB; empty: off"),
    "socket_path": Key("socket.path", "socket for launchers"),
    "status_path": Key("status.path", "socket for `status`"),
    "remedies_mode": Key("remedies.mode", "execute remedies, or only report them", choices=("observe", "act")),
    "remedies_way": Key("remedies.way", "how to request a remedy", choices=("slurm", "label", "api", "none")),
    "remedies_breaker_share": Key(
        "remedies.breaker_share", "share of the nodes taken at most within an hour", least=0.0, most=1.0
    ),
    "metrics_address": Key("metrics.address", "listen address for metrics"),
    "metrics_port": Key("metrics.port", "listen port for metrics; 0: off", least=0, most=65535),
    "metrics_token_path": Key("metrics.token_path", "file with the bearer token for scrapers; created if missing"),
    "metrics_remote_write_url": Key("metrics.remote_write_url", "Prometheus remote-write URL; empty: off"),
    "metrics_interval_s": Key("metrics.interval_s", "interval between remote writes", least=1.0, most=3600.0),
    "controller_enabled": Key("controller.enabled", "this node is the cluster's controller"),
    "lending_enabled": Key(
        "lending.enabled", "take nodes back from elastic jobs for jobs of higher priority (controller only)"
    ),
    "lending_notice_s": Key("lending.notice_s", "time that a task gets to leave", least=1.0, most=3600.0),
    "checks_directory": Key("checks.directory", "folder of custom checks"),
    "burn_in_seconds": Key("burn_in.seconds", "duration of `check --deep`", least=1.0, most=86400.0),
    "burn_in_repeat_s": Key(
        "burn_in.repeat_s",
        "interval of deep checks on an idle node; 0: only when a verdict requires one",
        least=0.0,
        most=1e7,
    ),
    "cluster_name": Key("cluster.name", "cluster name; default: HOLDFAST_CLUSTER"),
    "cluster_orchestrator": Key("cluster.orchestrator", "orchestrator; empty: unknown", choices=("slurm", "eks", "")),
    "node_instance_id": Key("node.instance_id", "instance id; default: HOLDFAST_INSTANCE_ID, or cloud-init's"),
    "node_host": Key("node.host", "node name; default: host name"),
    "mounts_paths": Key(
        "mounts.paths", "mount points, separated by commas; auto: shared file systems and /fsx; empty: none"
    ),
    "disks_paths": Key("disks.paths", "mount points of local disks; auto: each disk once; empty: none"),
    "nvml_library": Key("nvml.library", "NVIDIA's management library; empty: none"),
    "gpus_expected": Key("gpus.expected", "expected number of GPUs; 0: the most seen since boot", least=0, most=64),
    "shipping_enabled": Key("shipping.enabled", "ship events to the cluster's log group"),
    "fabric_root": Key("fabric.root", "sysfs folder of EFA and InfiniBand devices"),
    "hma_path": Key("hma.path", "log file of HyperPod's own agent; empty: none"),
}
"""By the names of the fields."""


def keys() -> "dict[str, str]":
    return {key.name: field for field, key in KEYS.items()}


def load(
    *, file: Optional[Path], assignments: Sequence[str] = (), environment: Mapping[str, str] = os.environ
) -> Configuration:
    """Read the file (None: the default one, if any), then ``KEY=VALUE`` assignments; raises ConfigurationError."""
    problems: list[str] = []
    given = _file_values(file, problems)
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            problems.append(f"--set {assignment}: must be KEY=VALUE")
            continue
        given[name] = (f"--set {assignment}", text)
    values: dict[str, Any] = {}
    known = keys()
    for name, (where, value) in given.items():
        if name not in known:
            problems.append(f"{where}: unknown key '{name}'; allowed: {', '.join(sorted(known))}")
            continue
        try:
            values[known[name]] = _converted(known[name], value)
        except ValueError as problem:
            problems.append(f"{where}: {name} {problem}")
    if problems:
        raise ConfigurationError(problems)
    return _completed(values, environment)


def _file_values(file: Optional[Path], problems: "list[str]") -> "dict[str, tuple[str, Any]]":
    path = Path(DEFAULT_PATH) if file is None else file
    if file is None and not path.exists():
        return {}
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as problem:
        problems.append(f"{path}: cannot be read: {problem.strerror}")
        return {}
    except (ValueError, RecursionError) as problem:
        problems.append(f"{path}: not JSON: {problem}")
        return {}
    if not isinstance(content, dict):
        problems.append(f"{path}: must be one JSON object, such as {{'remedies.mode': 'observe'}}")
        return {}
    return {str(name): (str(path), value) for name, value in _flat(content).items()}


def _flat(content: "Mapping[str, Any]", prefix: str = "") -> "dict[str, Any]":
    found: dict[str, Any] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            found.update(_flat(value, f"{prefix}{name}."))
        else:
            found[f"{prefix}{name}"] = value
    return found


def _converted(field: str, value: Any) -> Any:
    key, kind = KEYS[field], type(getattr(Configuration(), field))
    if kind is bool:
        words = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
        if isinstance(value, bool) or (isinstance(value, str) and value.lower() in words):
            return value if isinstance(value, bool) else words[value.lower()]
        raise ValueError(f"must be true or false, got {value!r}")
    if kind is int or kind is float:
        return _number(key, kind, value)
    if not isinstance(value, str):
        raise ValueError(f"must be a string, got {value!r}")  # noqa: TRY004 - a mistake of the user's
    if key.choices and value not in key.choices:
        raise ValueError(f"must be one of {', '.join(choice or 'nothing' for choice in key.choices)}, got {value!r}")
    return value


def _number(key: Key, kind: Any, value: Any) -> Any:
    allowed = f"must be a{' whole' if kind is int else ''} number from {key.least:g} to {key.most:g}, got {value!r}"
    try:
        number = kind(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        number = None
    if (
        number is None
        or not key.least <= number <= key.most
        or (kind is int and isinstance(value, float) and value != number)
    ):
        raise ValueError(allowed)
    return number


def _completed(values: "dict[str, Any]", environment: Mapping[str, str]) -> Configuration:
    values["cluster_name"] = values.get("cluster_name") or environment.get("HOLDFAST_CLUSTER", "")
    values["node_host"] = values.get("node_host") or socket.gethostname()
    found = values.get("node_instance_id") or environment.get("HOLDFAST_INSTANCE_ID", "")
    values["node_instance_id"] = found or _cloud_init_id()
    return Configuration(**values)


def _cloud_init_id() -> str:
    try:
        return Path("/var/lib/cloud/data/instance-id").read_text("ascii").strip()
    except (OSError, ValueError):
        return ""
