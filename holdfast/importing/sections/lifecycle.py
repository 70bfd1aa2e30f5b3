"""``lifecycle`` section of an environment file."""

import json
from collections.abc import Mapping
from typing import Any

from holdfast.config import LifecycleMode, mode_of
from holdfast.importing.draft import Draft, KeptParts, most_common

FIRST_UID, LAST_UID = 1001, 59999
LEGACY_FILE = "provisioning_parameters.json"
HOOKS = {"OnCreate": "on_create", "OnInitComplete": "on_init_complete"}


class Scripts:
    """Lifecycle scripts of a cluster: kept ones by group, and settings of the others."""

    def __init__(self, request: Mapping[str, Any], files: Mapping[str, str], keeping: KeptParts) -> None:
        self._request, self._files = request, files
        self._groups = request.get("InstanceGroups") or []
        self.ours = own_settings(files)
        configs = [config for config in map(_scripts_of, self._groups) if config]
        buckets = {config["source_s3_uri"].removeprefix("s3://").partition("/")[0] for config in configs}
        self.kept = self.ours is None and bool(configs) and keeping.keeps("scripts", *buckets)
        texts = [json.dumps(config) for config in configs]
        self._shared = json.loads(most_common(texts) or "{}") if self.kept else {}
        self._mode = _shared_mode(request)

    def of(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of a group that differ from ``section``."""
        if not self.kept:
            own = mode(group)
            return {} if own == self._mode else {"lifecycle_mode": own}
        config = _scripts_of(group)
        if not config:
            return {"lifecycle_mode": "none"}
        return {} if config == self._shared else {"life_cycle_config": config}

    def section(self, *, legacy: bool, imported: Draft) -> dict[str, Any]:
        """Return the ``lifecycle`` section under its name; empty if all is default."""
        self._ask_about_hooks(imported)
        if self.kept:
            return {"lifecycle": {"existing": self._existing(legacy=legacy, imported=imported)}}
        if self.ours is None:
            users = self._as_others_have_it(imported)
        else:
            for name in self.ours.get("scripts", []):
                text = f"{name} ran after Holdfast's scripts: add its path"
                imported.note("lifecycle.scripts", text, decide=True)
            users = [dict(user) for user in self.ours.get("users", [])]
        mode_section = {} if self._mode == default_mode(self._request) else {"mode": self._mode}
        section = {**mode_section, **({"users": users} if users else {})}
        return {"lifecycle": section} if section else {}

    def _existing(self, *, legacy: bool, imported: Draft) -> dict[str, Any]:
        uri = self._shared["source_s3_uri"]
        imported.note("lifecycle.existing", "the scripts that are there are used; what they do is theirs")
        if legacy:
            # SageMaker guide, sagemaker-hyperpod-slurm-api-config-migration, step 4: "does not allow ... both".
            text = (
                f"HyperPod refuses a cluster whose groups say slurm here while {LEGACY_FILE} is beside the scripts: "
                f"copy them without it (aws s3 cp --recursive --exclude {LEGACY_FILE} {uri} s3://...), "
                "and name the copy"
            )
            imported.note("lifecycle.existing.source_s3_uri", text, decide=True)
        return dict(self._shared)

    def _as_others_have_it(self, imported: Draft) -> list[dict[str, Any]]:
        for uri, script in sorted(_named_scripts(self._groups)):
            text = f"{script} of {uri} is not read: put what it does beside creating users into lifecycle.scripts"
            imported.note("lifecycle", text, decide=True)
        if default_mode(self._request) != "custom" and any(mode(group) == "custom" for group in self._groups):
            text = "its scripts start Slurm, and so do Holdfast's in mode custom; take it out to have HyperPod start it"
            imported.note("lifecycle.mode", text)
        return _sample_users(self._files.get("shared_users.txt", ""), imported)

    def _ask_about_hooks(self, imported: Draft) -> None:
        for group in self._groups:
            config = group.get("LifeCycleConfig")
            if config is None:
                continue
            named = [hook for hook in HOOKS if config.get(hook)]
            if len(named) == 1 and config.get("SourceS3Uri"):
                continue
            path = f"cluster.instance_groups.{group['InstanceGroupName']}"
            given = "both OnCreate and OnInitComplete" if len(named) == 2 else "not all of SourceS3Uri and one hook"
            imported.note(
                path, f"its LifeCycleConfig names {given}, which HyperPod refuses; say what it runs", decide=True
            )


def _shared_mode(request: Mapping[str, Any]) -> LifecycleMode:
    modes = {mode(group) for group in request.get("InstanceGroups") or []}
    return modes.pop() if len(modes) == 1 else default_mode(request)


def default_mode(request: Mapping[str, Any]) -> LifecycleMode:
    return mode_of(
        group=None,
        environment=None,
        on_eks="Eks" in (request.get("Orchestrator") or {}),
        continuous=request.get("NodeProvisioningMode") == "Continuous",
    )


def mode(group: Mapping[str, Any]) -> LifecycleMode:
    config = group.get("LifeCycleConfig") or {}
    if config.get("OnCreate"):
        return "custom"
    return "extension" if config.get("OnInitComplete") else "none"


def own_settings(files: Mapping[str, str]) -> dict[str, Any] | None:
    """Settings of Holdfast's lifecycle scripts; None for other scripts."""
    try:
        settings = json.loads(files.get("config.json", ""))
    except ValueError:
        return None
    return settings if isinstance(settings, dict) and {"cluster_name", "events_path"} <= set(settings) else None


def _scripts_of(group: Mapping[str, Any]) -> dict[str, Any]:
    config = group.get("LifeCycleConfig") or {}
    hooks = {setting: config[hook] for hook, setting in HOOKS.items() if config.get(hook)}
    return {"source_s3_uri": config.get("SourceS3Uri", "").rstrip("/"), **hooks} if hooks else {}


def _named_scripts(groups: list[Mapping[str, Any]]) -> set[tuple[str, str]]:
    configs = (group.get("LifeCycleConfig") or {} for group in groups)
    return {
        (config["SourceS3Uri"], config.get("OnCreate") or config.get("OnInitComplete") or "the script")
        for config in configs
        if config.get("SourceS3Uri")
    }


def _sample_users(text: str, imported: Draft) -> list[dict[str, Any]]:
    users = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = line.partition(",")
        uid = rest.partition(",")[0].strip()
        if uid.isdigit() and FIRST_UID <= int(uid) <= LAST_UID:
            home = rest.partition(",")[2].strip()
            chosen = {"home": home} if home.startswith("/") and home != f"/fsx/{name.strip()}" else {}
            users.append({"name": name.strip(), "uid": int(uid), **chosen})
        else:
            allowed = f"allowed: {FIRST_UID} to {LAST_UID}"
            imported.note("lifecycle", f"user {name} with id {uid or 'none'} is left out; {allowed}", decide=True)
    return users
