"""
``--container-mounts=SRC:DST[:FLAGS][,SRC:DST...]``, as in Pyxis. Pure.

Source: ``args.c`` of NVIDIA/pyxis 0.24 and ``enroot-mount``: without DST both paths are equal; FLAGS are separated by
``+``; sources are bound recursively; ``tmpfs`` is an empty source.
"""

import posixpath
from dataclasses import dataclass

from .errors import RefusedError

MOUNTS_MAX = 256
_ATTRIBUTES = frozenset({"ro", "nosuid", "nodev", "noexec"})
_DEFAULTS = frozenset({"rw", "bind", "rbind", "private", "rprivate", "slave", "rslave", "x-create=auto"})
"""What holds anyway, or makes no difference where nothing is mounted later."""


@dataclass(frozen=True, kw_only=True)
class ContainerMount:
    """A mount of the container. ``source`` is empty for a new tmpfs."""

    source: str
    target: str
    attributes: frozenset[str] = frozenset()


def parse(option: str, *, folder: str = "/") -> tuple[ContainerMount, ...]:
    """Parse the mounts, in order. ``folder``: base of relative sources. Raise RefusedError in Pyxis's words."""
    entries = option.split(",") if option else []
    if len(entries) > MOUNTS_MAX:
        raise RefusedError(f"--container-mounts: {len(entries)} mounts; at most {MOUNTS_MAX} are allowed")
    return tuple(_entry(entry, folder=folder) for entry in entries)


def _entry(entry: str, *, folder: str) -> ContainerMount:
    source, colon, rest = entry.partition(":")
    target, _, flags = rest.partition(":")
    if not source or (colon and not target) or "\0" in entry:
        raise RefusedError(f"--container-mounts: invalid format: {entry}")
    target = target or source
    if source == "umount":
        raise RefusedError(f"--container-mounts: {entry}: 'umount' is not available on the local cluster")
    if source != "tmpfs" and not source.startswith((".", "/")):
        raise RefusedError('mount source must be a relative path, an absolute path, "tmpfs" or "umount"')
    if not target.startswith((".", "/")):
        raise RefusedError("mount target must be a relative path or an absolute path")
    # Lexically, as the target need not exist; a symbolic link on the way is followed when the mount is made.
    inside = "/" + posixpath.normpath("/" + target).strip("/")
    if inside == "/":
        raise RefusedError(f"--container-mounts: {entry}: the container's / is its image; choose a target below it")
    where = "" if source == "tmpfs" else posixpath.join(folder, source)
    return ContainerMount(source=where, target=inside, attributes=_attributes(flags, entry=entry))


def _attributes(flags: str, *, entry: str) -> frozenset[str]:
    words = frozenset(flags.split("+")) if flags else frozenset()
    if unknown := sorted(words - _ATTRIBUTES - _DEFAULTS):
        allowed = ", ".join(sorted(_ATTRIBUTES | _DEFAULTS))
        raise RefusedError(f"--container-mounts: {entry}: flag {unknown[0]!r} is not known; allowed: {allowed}")
    return words & _ATTRIBUTES
