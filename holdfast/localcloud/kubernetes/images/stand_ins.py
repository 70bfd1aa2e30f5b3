"""Stand-ins: images that a program on the node replaces. Pure."""

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .layers import Entry
from .node_root import PATH, PROGRAMS

_TABLE = Path(__file__).with_name("stand_ins.json")
_SLEEPER = f"{PROGRAMS}/sleep-as-stand-in"


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """Replacement for some images, with the files of ``NodeRoot``."""

    images: tuple[str, ...]
    """Names without a tag; ``*`` stands for any part of a name between two slashes."""
    command: tuple[str, ...] = ()
    """The entrypoint. Default: print that this stand-in does nothing, and sleep."""
    arguments: tuple[str, ...] = ()
    """Default arguments."""
    programs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Programs that a pod's own ``command`` may name: name on PATH to the words that are run instead."""
    packages: tuple[str, ...] = ()
    """Python packages of Holdfast that the image has in /opt/holdfast/lib."""
    file_systems: bool = False
    """True: the node's Lustre mounts are visible, in a pod with CAP_SYS_ADMIN."""
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    directory: str = ""
    purpose: str
    source: str
    date: str

    @property
    def sleeps(self) -> bool:
        """True if nothing does the work of the image."""
        return not self.command and not self.arguments

    def stands_for(self, name: str) -> bool:
        """Return True for an image name of the store, with any tag."""
        path, _, _ = name.rpartition(":")
        return any(_pattern(pattern).fullmatch(path) for pattern in self.images)

    def config(self) -> dict[str, Any]:
        settings = {"PATH": PATH, **self.env}
        config: dict[str, Any] = {"Env": [f"{name}={value}" for name, value in settings.items()]}
        if self.sleeps:
            config["Entrypoint"] = [_SLEEPER]
        if self.command:
            config["Entrypoint"] = list(self.command)
        if self.arguments:
            config["Cmd"] = list(self.arguments)
        if self.user:
            config["User"] = self.user
        if self.directory:
            config["WorkingDir"] = self.directory
        return config

    def entries(self) -> list[Entry]:
        scripts = {f"{PROGRAMS}/{name}": _script(words) for name, words in self.programs.items()}
        if self.sleeps:
            scripts[_SLEEPER] = _sleeper(self.purpose)
        return [Entry(path=path, content=text.encode()) for path, text in scripts.items()]


class StandIns:
    def __init__(self, rows: Sequence[StandIn]) -> None:
        self.rows = tuple(rows)

    def find(self, name: str) -> StandIn | None:
        return next((row for row in self.rows if row.stands_for(name)), None)


@functools.cache
def stand_ins() -> StandIns:
    rows: list[dict[str, Any]] = json.loads(_TABLE.read_text())["stand_ins"]
    return StandIns([_row(row) for row in rows])


def _row(row: Mapping[str, Any]) -> StandIn:
    lists = ("images", "command", "arguments", "packages")
    given: dict[str, Any] = {key: tuple(value) if key in lists else value for key, value in row.items()}
    given["programs"] = {name: tuple(words) for name, words in row.get("programs", {}).items()}
    return StandIn(**given)


@functools.cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile("[^/]*".join(re.escape(part) for part in pattern.split("*")))


def _script(words: Sequence[str]) -> str:
    return f'#!/bin/sh\nexec {" ".join(map(_quoted, words))} "$@"\n'


def _sleeper(purpose: str) -> str:
    """Trap SIGTERM: ``sleep`` as process 1 would ignore it, and a pod would take 30 s to end."""
    text = _quoted(f"a stand-in that does nothing: {purpose}")
    return f"#!/bin/sh\ntrap 'exit 0' TERM INT\necho {text}\nsleep infinity &\nwait\n"


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
