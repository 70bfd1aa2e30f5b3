"""
Groups that a script makes, in their order, to be made again under the same names.

Torch names groups by a counter, so each rank must make the same groups in the same order: all ranks compare a digest.
"""

import hashlib
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch.distributed.distributed_c10d as c10d

from holdfast_runtime.groups import private
from holdfast_runtime.groups.sockets import newer_than, sockets_of


@dataclass(frozen=True)
class Made:
    """A group of the script."""

    number: int
    """Of groups that were made before it; its name, where it has no other."""
    options: dict[str, Any]
    """Of torch's function."""
    name: str
    """Empty at a rank that is not in it."""

    def label(self) -> str:
        if self.options.get("use_local_synchronization"):
            return ""
        ranks, backend = self.options.get("ranks"), self.options.get("backend")
        who = "all ranks" if ranks is None else f"ranks {sorted(ranks)}"
        return f"group {self.number} of {who}" + (f" with {backend}" if backend else "")


class RecordedGroups:
    """All groups that the script makes from ``watch`` on."""

    def __init__(self) -> None:
        self.alone = False
        """Whether this process makes them without its peers."""
        self.is_whole = False
        """Whether the script has made all its groups: a process that takes over a rank has no others."""
        self.wait_s = 0.0
        """Longest wait of a collective in a group; 0 for torch's default."""
        self.made: Callable[[dict[int, str]], None] = lambda _sockets: None
        """Called with the sockets of each group that the script makes."""
        self._list: list[Made] = []
        self._real: Callable[..., Any] = c10d._new_group_with_tag
        self._again = False

    def watch(self) -> None:
        private.watch_new_groups(self._make)

    def labels(self) -> list[str]:
        return [text for made in self._list if (text := made.label())]

    def of_some_ranks(self) -> list[str]:
        return [made.label() or "a group" for made in self._list if made.options.get("ranks") is not None]

    def sizes(self, world_size: int) -> list[int]:
        """Members of each group that this rank is in, in a job of so many ranks."""
        return [len(made.options.get("ranks") or range(world_size)) for made in self._list if made.name]

    def digest(self) -> str:
        return hashlib.blake2b(json.dumps(self.labels()).encode(), digest_size=8).hexdigest()

    def make_again(self, *, timeout_s: float) -> None:
        """Make all of them, after the default group. Raises RuntimeError when a peer is gone."""
        self._again = True
        try:
            for made in self._list:
                private.number_groups_from(made.number)
                group = self._real(**self._own(made.options, timeout_s=timeout_s))
                if private.name_of(group) != made.name:
                    raise private.UnsupportedError(
                        f"{made.label()} was called {made.name!r} and is called {private.name_of(group)!r} when it is "
                        "made again; groups must be made after holdfast_runtime.init_process_group(), by every rank"
                    )
            private.remember_meshes()
        finally:
            self._again = False

    def _make(self, real: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        self._real = real
        if self._again:
            return real(*arguments, **options)
        if self.is_whole:
            raise private.UnsupportedError(
                "a process group is made after the first step: a process that takes over a rank would not have it. "
                "In place of dcp.async_save in a group of its own give Run(checkpoint=Checkpoints(folder), "
                "checkpoint_every=N); for other work make a DeviceMesh before Run, and call mesh.get_group(name) at "
                "each use, in a step or in run.steps(total, between=...)"
            )
        options = dict(inspect.signature(real).bind(*arguments, **options).arguments)
        before, number = sockets_of(), private.next_number()
        group = real(**self._own(options, timeout_s=self.wait_s))
        self._list.append(Made(number=number, options=options, name=private.name_of(group)))
        self.made(newer_than(before))
        return group

    def _own(self, options: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
        own = {**options, "timeout": timedelta(seconds=timeout_s) if timeout_s else options.get("timeout")}
        return {**own, "backend": "fake", "backend_options": None} if self.alone else own
