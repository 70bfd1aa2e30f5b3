"""Unit files below a root: search order, drop-ins, links, enablement; systemd.unit(5)."""

from __future__ import annotations

import os

from .text import Unit, UnitError, parse_into

SEARCH = (
    "/etc/systemd/system", "/run/systemd/system", "/run/systemd/generator", "/usr/local/lib/systemd/system",
    "/lib/systemd/system",
)  # fmt: skip
KINDS = ("service", "target", "mount", "automount", "socket", "timer", "path", "slice", "device", "scope", "swap")


class Root:
    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix.rstrip("/")
        self.host = os.uname().nodename

    def at(self, path: str) -> str:
        return self.prefix + path

    @property
    def state(self) -> str:
        return self.at("/run/holdfast/units")

    @property
    def logs(self) -> str:
        return self.at("/var/log/holdfast/units")

    # --- finding

    def full_name(self, name: str) -> str:
        """Return ``ssh.service`` for ``ssh``, and the mount unit for a path."""
        if name.startswith("/"):
            from .text import escape_path

            return escape_path(name) + ".mount"
        return name if name.rpartition(".")[2] in KINDS and "." in name else name + ".service"

    def find(self, name: str) -> str:
        """Return the file of a unit or its template, as a path below the root, or ""."""
        candidates = [name]
        if "@" in name:
            candidates.append(name.partition("@")[0] + "@." + name.rpartition(".")[2])
        for candidate in candidates:
            for folder in SEARCH:
                path = self.at(f"{folder}/{candidate}")
                if os.path.lexists(path):
                    return path
        return ""

    def load(self, name: str) -> Unit:
        """Read a unit; an alias is its target."""
        name = self.full_name(name)
        path = self.find(name)
        if path and self._is_masked(path):
            return Unit(name=name, path=path, load_state="masked")
        real = self._follow(path)
        if real and os.path.basename(real) != os.path.basename(path) and "@" not in name:
            name = os.path.basename(real)
        unit = Unit(name=name, path=real, host=self.host)
        if not real:
            return unit
        try:
            parse_into(unit.sections, _read(real))
            unit.drop_ins = self._drop_ins(name)
            for drop_in in unit.drop_ins:
                parse_into(unit.sections, _read(drop_in))
            unit.load_state = "loaded"
            self._check(unit)
        except (OSError, UnicodeDecodeError):
            unit.load_state = "error"
        except UnitError:
            unit.load_state = "bad-setting"
        return unit

    def _check(self, unit: Unit) -> None:
        kinds = ("simple", "exec", "forking", "oneshot", "notify", "dbus", "idle")
        if unit.kind != "service":
            return
        if unit.type not in kinds:
            raise UnitError(f"{unit.name}: Type= must be one of {', '.join(kinds)}, got {unit.type!r}")
        if not any(unit.raw("Service", key) for key in ("ExecStart", "ExecStop", "SuccessAction")):
            raise UnitError(f"{unit.name}: service has no ExecStart=, ExecStop=, or SuccessAction=")
        if len(unit.raw("Service", "ExecStart")) > 1 and unit.type != "oneshot":
            raise UnitError(f"{unit.name}: more than one ExecStart= is only allowed for Type=oneshot")

    def _is_masked(self, path: str) -> bool:
        if os.path.islink(path):
            return os.readlink(path) == "/dev/null"
        return os.path.isfile(path) and os.path.getsize(path) == 0

    def _follow(self, path: str) -> str:
        for _ in range(10):
            if not path or not os.path.islink(path):
                break
            target = os.readlink(path)
            path = self.at(target) if target.startswith("/") else os.path.join(os.path.dirname(path), target)
        return path if path and os.path.isfile(path) else ""

    def _drop_ins(self, name: str) -> list[str]:
        """Return ``X.service.d/*.conf`` of all folders by file name; the first in search order wins."""
        found: dict[str, str] = {}
        bases = [name] if "@" not in name else [name, name.partition("@")[0] + "@." + name.rpartition(".")[2]]
        for folder in reversed(SEARCH):
            for base in reversed(bases):
                place = self.at(f"{folder}/{base}.d")
                if os.path.isdir(place):
                    found.update((entry, f"{place}/{entry}") for entry in os.listdir(place) if entry.endswith(".conf"))
        return [found[name] for name in sorted(found)]

    def linked(self, name: str, kind: str) -> list[str]:
        """Return the units in ``X.wants/`` or ``X.requires/``."""
        found: set[str] = set()
        for folder in SEARCH:
            place = self.at(f"{folder}/{name}.{kind}")
            if os.path.isdir(place):
                found.update(entry for entry in os.listdir(place) if "." in entry)
        return sorted(found)

    def names(self) -> list[str]:
        found: set[str] = set()
        for folder in SEARCH:
            if os.path.isdir(self.at(folder)):
                found.update(name for name in os.listdir(self.at(folder)) if name.rpartition(".")[2] in KINDS)
        return sorted(found)


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
