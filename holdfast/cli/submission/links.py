"""Symbolic links of a job folder that resolve nowhere on the nodes. Pure."""

import posixpath
from collections.abc import Iterable, Mapping


def leads_nowhere(links: Mapping[str, str], *, paths: Iterable[str], mounts: Iterable[str]) -> list[str]:
    """
    Links whose target is neither in the uploaded folder nor below a mount of the cluster.

    Args:
        links: Path of each link -> its target.
        paths: All uploaded paths.
        mounts: Absolute folders that the nodes mount, such as /fsx.
    """
    there, mounted = {".", *paths}, [posixpath.normpath(one) for one in mounts]
    return [path for path, target in links.items() if not _leads(path, target, links, there, mounted)]


def _leads(path: str, target: str, links: Mapping[str, str], there: set[str], mounted: list[str]) -> bool:
    if target.startswith("/"):
        end = posixpath.normpath(target)
        return any(end == one or end.startswith(f"{one.rstrip('/')}/") for one in mounted)
    end = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if end in there:
        return True
    # Below another link, whose own target decides.
    parts = end.split("/")
    return any("/".join(parts[:count]) in links for count in range(1, len(parts)))
