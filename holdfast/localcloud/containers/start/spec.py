"""
runc's configuration of a container, from image and node. Pure.

As Enroot's ``mounts.d`` and hooks (``conf/`` of NVIDIA/enroot): the node's /proc, /sys, /dev and /dev/shm, an empty
/tmp and /run of the user, the node's name files read-only; the node's processes, network and IPC. Mounts of the user
come later.
"""

from collections.abc import Mapping, Sequence
from typing import Any

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_RESTRICTED = ["nosuid", "nodev", "noexec"]


def runc_config(*, root: str, process_files: str, files: Mapping[str, str], uid: int, gid: int) -> dict[str, Any]:
    """
    Return the ``config.json`` of the bundle.

    Args:
        root: Prepared root file system.
        process_files: A mount of the node's /proc.
        files: Path in the container to a file shown there, read-only.
    """
    of_user = [f"uid={uid}", f"gid={gid}", "mode=755"]
    mounts: list[dict[str, Any]] = [
        _mount("/proc", source=process_files, options=["rbind"]),
        _mount("/sys", source="/sys", options=["rbind", "ro", *_RESTRICTED]),
        _mount("/dev", source="/dev", options=["rbind", "nosuid", "noexec"]),
        *(_mount(at, kind="tmpfs", options=["nosuid", "nodev", *of_user]) for at in ("/tmp", "/run")),  # noqa: S108
        *(_mount(at, source=source, options=["bind", "ro", *_RESTRICTED]) for at, source in sorted(files.items())),
    ]
    return {
        "ociVersion": "1.0.2",
        "root": {"path": root},
        # It waits to be started and never is: the tasks of the step join its mounts instead.
        "process": {
            "user": {"uid": uid, "gid": gid},
            "args": ["/proc/self/exe"],
            "cwd": "/",
            "env": [],
            "noNewPrivileges": True,
        },
        "mounts": mounts,
        "linux": {"namespaces": [{"type": "mount"}, {"type": "pid"}], "rootfsPropagation": "private"},
    }


def _mount(at: str, *, options: Sequence[str], source: str = "tmpfs", kind: str = "bind") -> dict[str, Any]:
    return {"destination": at, "type": kind, "source": source, "options": [*options, "rprivate"]}


def environment(image: Mapping[str, Any]) -> tuple[str, ...]:
    """Return ``NAME=value`` of the image, PATH always included. ``image``: OCI's image configuration."""
    words = [str(word) for word in (image.get("config") or {}).get("Env") or ()]
    kept = [word for word in words if "=" in word[1:] and "\0" not in word]
    return tuple(kept) if any(word.startswith("PATH=") for word in kept) else (f"PATH={DEFAULT_PATH}", *kept)


def working_directory(image: Mapping[str, Any]) -> str:
    given = str((image.get("config") or {}).get("WorkingDir") or "/")
    return "/" + given.strip("/") if "\0" not in given else "/"


def with_account(text: str, *, entry: str) -> str:
    """Return a password or group file with ``entry`` first and unique by name and number."""
    name, _, number = entry.split(":")[:3]
    others = [line for line in text.splitlines() if line and line.split(":")[0] != name]
    others = [line for line in others if line.split(":")[2:3] != [number]]
    return "\n".join([entry, *others]) + "\n"
