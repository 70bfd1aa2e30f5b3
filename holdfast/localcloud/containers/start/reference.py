"""Names of images, as in Pyxis: ``[USER@][REGISTRY#]IMAGE[:TAG]``, with or without ``docker://``. Pure."""

import re
from urllib.parse import quote

from .errors import RefusedError

_IMPLIED = ("docker.io/library/", "docker.io/", "registry-1.docker.io/", "localhost/")
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*(:[0-9]+(?=/))?(/[a-zA-Z0-9][a-zA-Z0-9._-]*)*")
_TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
_LENGTH = 512


def canonical(given: str) -> str:
    """Return ``name:tag`` as the store keeps it. Raise RefusedError for another form, or a path."""
    if given.startswith((".", "/")):
        raise RefusedError(
            f"{given}: a path is not an image name; name an image that 'holdfast images list' shows, or give jobs the "
            "path of a squashfs file"
        )
    rest = re.sub(r"^dockerd?://", "", given)
    rest = rest.rpartition("@")[2] if "@sha256:" not in rest else rest
    rest = rest.replace("#", "/", 1)
    for implied in _IMPLIED:
        if rest.startswith(implied):
            rest = rest.removeprefix(implied)
            break
    head, slash, last = rest.rpartition("/")
    name, colon, tag = last.partition(":")
    name = head + slash + name
    tag = tag if colon else "latest"
    if len(given) > _LENGTH or not _NAME.fullmatch(name) or not _TAG.fullmatch(tag):
        shown = given if len(given) <= 80 else given[:77] + "..."
        raise RefusedError(f"{shown!r} is not an image name; allowed: [USER@][REGISTRY#]IMAGE[:TAG]")
    return f"{name}:{tag}"


def adding(name: str) -> str:
    if name.startswith("holdfast-training:"):
        return "holdfast images build"
    first, slash, _ = name.partition("/")
    registry = "" if slash and ("." in first or ":" in first) else "docker.io/" if slash else "docker.io/library/"
    return f"holdfast images add docker://{registry}{name} {name}"


def file_name(name: str) -> str:
    """Return the file name of a canonical name: one component, never a dot file."""
    return quote(name, safe="")
