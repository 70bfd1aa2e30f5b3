"""enable, disable, mask, unmask, is-enabled: links between unit files."""

from __future__ import annotations

import os

from .manager import JobError
from .units import SEARCH, Root, Unit

_ETC = "/etc/systemd/system"


def state(root: Root, name: str) -> str:
    """Return the state as is-enabled prints it; "" without a unit file."""
    path = root.find(name)
    if not path:
        return ""
    unit = root.load(name)
    if unit.load_state == "masked":
        return "masked" if path.startswith(root.at("/etc")) else "masked-runtime"
    if os.path.islink(path) and os.path.basename(unit.path) != os.path.basename(path):
        return "alias"
    if path.startswith(root.at("/run/systemd/generator")):
        return "generated"
    if any(os.path.lexists(root.at(link)) for link in _links(unit, unit.name)):
        return "enabled"
    if "Install" not in unit.sections or not any(unit.sections["Install"].values()):
        return "static"
    if not _links(unit, unit.name):
        return "indirect"
    return "disabled"


def _links(unit: Unit, name: str) -> list[str]:
    if name.partition(".")[0].endswith("@"):
        default = unit.one("Install", "DefaultInstance")
        name = name.replace("@.", f"@{default}.") if default else name
    found = [f"{_ETC}/{alias}" for alias in unit.names("Install", "Alias")]
    for key, kind in (("WantedBy", "wants"), ("RequiredBy", "requires")):
        found += [f"{_ETC}/{target}.{kind}/{name}" for target in unit.names("Install", key)]
    return found


def enable(root: Root, name: str, *, seen: tuple[str, ...] = ()) -> list[str]:
    """Create the links of [Install]; return systemctl's lines."""
    unit = _existing(root, name, verb="enable")
    reported = []
    for link in _links(unit, unit.name):
        at, target = root.at(link), unit.path[len(root.prefix) :]
        if os.path.islink(at) and os.readlink(at) == target:
            continue
        os.makedirs(os.path.dirname(at), exist_ok=True)
        if os.path.lexists(at):
            os.unlink(at)
        os.symlink(target, at)
        reported.append(f"Created symlink {link} → {target}.")
    for other in unit.names("Install", "Also"):
        if other not in (*seen, name):
            reported += enable(root, other, seen=(*seen, name))
    return reported


def disable(root: Root, name: str) -> list[str]:
    """Remove every link to the unit below /etc."""
    unit = _existing(root, name, verb="disable")
    reported = []
    folder = root.at(_ETC)
    names = {unit.name, *unit.names("Install", "Alias")}
    for place, _, files in os.walk(folder):
        for file in files:
            path = os.path.join(place, file)
            desired = place.endswith((".wants", ".requires")) or file in unit.names("Install", "Alias")
            if file in names and desired and os.path.islink(path):
                os.unlink(path)
                reported.append(f'Removed "{path[len(root.prefix) :]}".')
    return reported


def _existing(root: Root, name: str, *, verb: str) -> Unit:
    path = root.find(name)
    if not path:
        raise JobError(f"Failed to {verb} unit: Unit file {name} does not exist.")
    unit = root.load(name)
    if unit.load_state == "masked":
        raise JobError(f"Failed to {verb} unit: Unit file {path[len(root.prefix) :]} is masked.")
    return unit


def mask(root: Root, name: str, *, runtime: bool = False) -> list[str]:
    folder = "/run/systemd/system" if runtime else _ETC
    at = root.at(f"{folder}/{name}")
    if os.path.lexists(at) and not os.path.islink(at):
        raise JobError(f"Failed to mask unit: File {folder}/{name} already exists.")
    if os.path.islink(at):
        if os.readlink(at) == "/dev/null":
            return []
        os.unlink(at)
    os.makedirs(root.at(folder), exist_ok=True)
    os.symlink("/dev/null", at)
    return [f"Created symlink {folder}/{name} → /dev/null."]


def unmask(root: Root, name: str) -> list[str]:
    reported = []
    for folder in SEARCH[:2]:
        at = root.at(f"{folder}/{name}")
        if os.path.islink(at) and os.readlink(at) == "/dev/null":
            os.unlink(at)
            reported.append(f'Removed "{folder}/{name}".')
    return reported
