"""Shared parts of the stand-ins."""

from __future__ import annotations

import os
import sys

STATE = "/var/lib/holdfast"
"""Records that live as long as the node's root."""


def refuse(program: str, argv: list[str], *, status: int = 1) -> int:
    """Reject a usage that AWS's scripts do not have."""
    sys.stderr.write(f"{program}: holdfast's stand-in does not support: {' '.join(argv)}\n")
    return status


def real(path: str, argv: list[str]) -> int:
    """Run the machine's own program; return only if it does not exist."""
    if os.access(path, os.X_OK):
        sys.stdout.flush()
        os.execv(path, [path, *argv])  # noqa: S606
    name = os.path.basename(path)
    sys.stderr.write(f"{name}: command not found\n")
    return 127


def record(kind: str, name: str, text: str = "") -> None:
    os.makedirs(f"{STATE}/{kind}", exist_ok=True)
    with open(f"{STATE}/{kind}/{name.replace('/', '_')}", "w", encoding="utf-8") as file:
        file.write(text)


def recorded(kind: str, name: str) -> bool:
    return os.path.exists(f"{STATE}/{kind}/{name.replace('/', '_')}")
