"""Lifecycle scripts of an environment file, by each group's mode."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.config import mode_of
from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.model import Lifecycle, Script
from holdfast.validation.shell import shell_mistake

HOOKS = {"custom": "on_create", "extension": "on_init_complete"}
"""What of a LifeCycleConfig each mode names; the file is called like it."""


class LifecycleModes:
    """Lifecycle configurations; groups of one mode share one. ``folder`` None: scripts are unknown."""

    def __init__(self, file: Settings, folder: Path | None) -> None:
        self._file, self._settings = file, file.lifecycle
        names, checks = self._settings.scripts, file.health.checks
        scripts: Any = UNRESOLVED
        if folder is not None and names is not UNRESOLVED and checks is not UNRESOLVED:
            ours = (Script(path="lifecycle", name=f"{hook}.sh", text="#!/bin/bash\n") for hook in HOOKS.values())
            theirs = _scripts(self._settings.at("scripts"), names, folder)
            scripts = (*ours, *theirs, *_scripts(file.health.at("checks"), checks, folder))
        self._by_mode = {mode: self._configuration(hook, scripts) for mode, hook in HOOKS.items()}

    def lifecycle(self, group: Settings) -> Any:
        """Configuration of a group: None in mode none, UNRESOLVED for an unknown mode."""
        mode = self._mode(group)
        there = self._there(group)
        if there is not None and mode != "none":
            return _existing(there)
        return mode if mode is UNRESOLVED else self._by_mode.get(mode)

    def place(self, group: Settings) -> str:
        """Path of a group's mode, or of a broken setting that decides it."""
        if group.lifecycle_mode is not None:
            return str(group.at("lifecycle_mode"))
        if self._settings.mode is None and self._provisioning is UNRESOLVED:
            return str(self._file.cluster.at("node_provisioning_mode"))
        return str(self._settings.at("mode"))

    @property
    def _provisioning(self) -> Any:
        return self._file.cluster.node_provisioning_mode

    def _mode(self, group: Settings) -> Any:
        own, shared, there = group.lifecycle_mode, self._settings.mode, self._there(group)
        if own is None and there is not None:
            return "custom" if there.is_set("on_create") else "extension"
        decisive = own if own is not None else shared if shared is not None else self._provisioning
        if decisive is UNRESOLVED:
            return UNRESOLVED
        return mode_of(
            group=own,
            environment=shared,
            on_eks=self._file.eks is not None,
            continuous=self._provisioning == "Continuous",
        )

    def _there(self, group: Settings) -> Settings | None:
        found: Settings | None = group.life_cycle_config or self._settings.existing
        return found

    def _configuration(self, hook: str, scripts: Any) -> Lifecycle:
        return Lifecycle(
            path="lifecycle",
            places=self._settings.places(scripts="scripts"),
            source_s3_uri="s3://sagemaker-holdfast/lifecycle/0",
            on_create="on_create.sh" if hook == "on_create" else None,
            on_init_complete="on_init_complete.sh" if hook == "on_init_complete" else None,
            scripts=scripts,
        )


def _existing(there: Settings) -> Lifecycle:
    return Lifecycle(
        path=there.path,
        places=there.places(source_s3_uri="source_s3_uri"),
        source_s3_uri=there.source_s3_uri,
        on_create=there.on_create,
        on_init_complete=there.on_init_complete,
        scripts=UNRESOLVED,
    )


def _scripts(setting: str, names: Sequence[str], folder: Path) -> list[Script]:
    texts = [None if _leads_out(name) else _text(folder / name) for name in names]
    return [
        Script(
            path=f"{setting}.{index}",
            name=name,
            text="#!/bin/sh\n" if _leads_out(name) else text,
            mistake=None if text is None else shell_mistake(text),
        )
        for index, (name, text) in enumerate(zip(names, texts, strict=True))
    ]


def _leads_out(name: str) -> bool:
    """True if a path leaves the folder; another rule reports it, and the file is not read."""
    return name.startswith("/") or ".." in name.split("/")


def _text(path: Path) -> str | None:
    # Bytes, because reading as text would turn CRLF into LF.
    return path.read_bytes().decode(errors="replace") if path.is_file() else None
