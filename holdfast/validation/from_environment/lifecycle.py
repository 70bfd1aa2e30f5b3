"""Lifecycle scripts of an environment file, by each group's mode."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.config import mode_of
from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.model import Lifecycle, Script
from holdfast.validation.shell import shell_mistake
from holdfast.validation.translation import Properties, properties_of

HOOKS = {"custom": "on_create", "extension": "on_init_complete"}
"""What of a LifeCycleConfig each mode names; the file is called like it."""
SOURCE_S3_URI = "s3://sagemaker-holdfast/lifecycle/0"
"""Stands for the place that deploying chooses."""


class LifecycleModes:
    """Lifecycle configurations of groups. ``folder`` None: scripts are unknown."""

    def __init__(self, file: Settings, folder: Path | None) -> None:
        self._file, self._settings = file, file.lifecycle
        names, checks = self._settings.scripts, file.health.checks
        self._scripts: Any = UNRESOLVED
        if folder is not None and names is not UNRESOLVED and checks is not UNRESOLVED:
            ours = (Script(path="lifecycle", name=f"{hook}.sh", text="#!/bin/bash\n") for hook in HOOKS.values())
            theirs = _scripts(self._settings.at("scripts"), names, folder)
            self._scripts = (*ours, *theirs, *_scripts(file.health.at("checks"), checks, folder))

    def properties(self, group: Settings) -> Properties | None:
        """Configuration of a group: None in mode none, UNRESOLVED for an unknown mode."""
        mode, there = self._mode(group), self._there(group)
        if there is not None and mode != "none":
            return properties_of(Lifecycle, there)
        if mode is UNRESOLVED:
            unknown: Properties = UNRESOLVED
            return unknown
        if mode not in HOOKS:
            return None
        hook = HOOKS[mode]
        return properties_of(
            Lifecycle,
            path="lifecycle",
            source_s3_uri=SOURCE_S3_URI,
            on_create="on_create.sh" if hook == "on_create" else None,
            on_init_complete="on_init_complete.sh" if hook == "on_init_complete" else None,
        )

    def with_scripts(self, lifecycle: Lifecycle | None, group: Settings) -> Lifecycle | None:
        """Configuration with Holdfast's scripts; what is in an existing prefix is unknown."""
        if lifecycle is None or lifecycle is UNRESOLVED:
            return lifecycle
        there = self._there(group)
        place = lifecycle.path if there is not None else self._settings.at("scripts")
        scripts = UNRESOLVED if there is not None else self._scripts
        return lifecycle.changed(scripts=scripts, places={**lifecycle.places, "scripts": place})

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
