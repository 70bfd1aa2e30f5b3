"""mount.lustre and mount.nfs: helpers of mount(8) that bind the directory of a file system."""

from __future__ import annotations

import errno
import os
import re
import sys

LUSTRE, NFS = "/run/holdfast/lustre", "/run/holdfast/nfs"
"""Below these a node finds every file system of the account: <DNS name>/<mount name>, <DNS name>/<exported path>."""


def lustre(argv: list[str]) -> int:
    """``mount.lustre <DNS>@tcp:/<name> <path> -o ...``; messages of Lustre's utils/mount_lustre.c."""
    source, target = _arguments(argv)
    match = re.fullmatch(r"([^@:/]+)@tcp[0-9]*:/([^/]+)", source)
    if match is None:
        sys.stderr.write(f"mount.lustre: Can't parse NID '{source.partition(':')[0]}'\n")
        return errno.EINVAL
    dns, name = match[1], match[2]
    if not os.path.isdir(f"{LUSTRE}/{dns}"):
        sys.stderr.write(f"mount.lustre: Can't parse NID '{dns}@tcp'\n")
        return errno.EINVAL
    if not os.path.isdir(f"{LUSTRE}/{dns}/{name}"):
        sys.stderr.write(
            f"mount.lustre: mount {source} at {target} failed: No such file or directory\n"
            "Is the MGS specification correct?\nIs the filesystem name correct?\n"
            "If upgrading, is the copied client log valid? (see upgrade docs)\n"
        )
        return errno.ENOENT
    return _bind(f"{LUSTRE}/{dns}/{name}", target)


def nfs(argv: list[str]) -> int:
    """``mount.nfs <DNS>:<path> <path> -o ...``; messages of nfs-utils."""
    source, target = _arguments(argv)
    host, colon, path = source.partition(":")
    if not colon or not path.startswith("/"):
        sys.stderr.write(f"mount.nfs: remote share not in 'host:dir' format: {source}\n")
        return 32
    if not os.path.isdir(f"{NFS}/{host}"):
        sys.stderr.write(f"mount.nfs: Failed to resolve server {host}: Name or service not known\n")
        return 32
    if not os.path.isdir(f"{NFS}/{host}{path}"):
        sys.stderr.write(f"mount.nfs: mounting {source} failed, reason given by server: No such file or directory\n")
        return 32
    return _bind(f"{NFS}/{host}{path}", target)


def _arguments(argv: list[str]) -> tuple[str, str]:
    plain, rest = [], list(argv)
    while rest:
        word = rest.pop(0)
        if word == "-o":
            rest = rest[1:]
        elif not word.startswith("-"):
            plain.append(word)
    if len(plain) != 2:
        sys.stderr.write("usage: mount.<type> <device> <directory> [-o options]\n")
        sys.exit(errno.EINVAL)
    return plain[0], plain[1]


def _bind(source: str, target: str) -> int:
    argv = ["mount", "-n", "--bind", source, target]
    return os.waitstatus_to_exitcode(os.waitpid(os.posix_spawnp("mount", argv, dict(os.environ)), 0)[1])
