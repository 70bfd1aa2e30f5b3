"""From the files beside a lifecycle script to the ``lifecycle`` section of an environment file."""

import json
from collections.abc import Mapping
from typing import Any

from holdfast.config import LifecycleMode, mode_of
from holdfast.importing._imported import Imported

FIRST_UID, LAST_UID = 1001, 59999


def lifecycle(request: Mapping[str, Any], files: Mapping[str, str], *, imported: Imported) -> dict[str, Any]:
    """
    The ``lifecycle`` section, under its name; nothing when there is nothing to say.

    Args:
        request: Its groups name the scripts that ran; what those do cannot be known.
        files: What was found in their folder.
        imported: Takes notes.
    """
    ours = own_settings(files)
    if ours is None:
        for uri, script in sorted(_scripts(request)):
            text = f"{script} of {uri} is not read: put what it does beside creating users into lifecycle.scripts"
            imported.note("lifecycle", text, decide=True)
        if _starts_slurm_itself(request):
            text = "its scripts start Slurm, and so do Holdfast's in mode custom; take it out to have HyperPod start it"
            imported.note("lifecycle.mode", text)
        users = _sample_users(files.get("shared_users.txt", ""), imported)
    else:
        for name in ours.get("scripts", []):
            text = f"{name} ran after Holdfast's scripts: add its path"
            imported.note("lifecycle.scripts", text, decide=True)
        users = [{"name": user["name"], "uid": user["uid"]} for user in ours.get("users", [])]
    shared = shared_mode(request)
    section = {**({} if shared == default_mode(request) else {"mode": shared}), **({"users": users} if users else {})}
    return {"lifecycle": section} if section else {}


def shared_mode(request: Mapping[str, Any]) -> LifecycleMode:
    """The mode that all groups have, or the default where they differ."""
    modes = {mode(group) for group in request.get("InstanceGroups", [])}
    return modes.pop() if len(modes) == 1 else default_mode(request)


def default_mode(request: Mapping[str, Any]) -> LifecycleMode:
    """The mode of groups of which a file says none."""
    return mode_of(
        group=None,
        environment=None,
        on_eks="Eks" in (request.get("Orchestrator") or {}),
        continuous=request.get("NodeProvisioningMode") == "Continuous",
    )


def mode(group: Mapping[str, Any]) -> LifecycleMode:
    """Who makes the nodes of a group ready, as its LifeCycleConfig says."""
    config = group.get("LifeCycleConfig") or {}
    if config.get("OnCreate"):
        return "custom"
    return "extension" if config.get("OnInitComplete") else "none"


def own_settings(files: Mapping[str, str]) -> dict[str, Any] | None:
    """What Holdfast's lifecycle scripts were told; None when the scripts are not Holdfast's."""
    if "config.json" not in files:
        return None
    settings: dict[str, Any] = json.loads(files["config.json"])
    return settings


def _starts_slurm_itself(request: Mapping[str, Any]) -> bool:
    return default_mode(request) != "custom" and any(mode(group) == "custom" for group in request["InstanceGroups"])


def _scripts(request: Mapping[str, Any]) -> set[tuple[str, str]]:
    configs = (group.get("LifeCycleConfig") or {} for group in request.get("InstanceGroups", []))
    return {
        (config["SourceS3Uri"], config.get("OnCreate") or config.get("OnInitComplete") or "the script")
        for config in configs
        if config.get("SourceS3Uri")
    }


def _sample_users(text: str, imported: Imported) -> list[dict[str, Any]]:
    """Lines of ``name,uid,home``, as AWS's sample scripts read them."""
    users = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = line.partition(",")
        uid = rest.partition(",")[0].strip()
        if uid.isdigit() and FIRST_UID <= int(uid) <= LAST_UID:
            users.append({"name": name.strip(), "uid": int(uid)})
        else:
            allowed = f"allowed: {FIRST_UID} to {LAST_UID}"
            imported.note("lifecycle", f"user {name} with id {uid or 'none'} is left out; {allowed}", decide=True)
    return users
