"""One process of a unit: user, folders, limits, environment, output; systemd.exec(5)."""

from __future__ import annotations

import os
import signal
import sys

from . import confine
from .units import Command, Root, Unit, UnitError, assignments, environment_file, limit

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LIMITS = (
    "AS", "CORE", "CPU", "DATA", "FSIZE", "LOCKS", "MEMLOCK", "MSGQUEUE", "NICE", "NOFILE", "NPROC", "RSS", "RTPRIO",
    "RTTIME", "SIGPENDING", "STACK",
)  # fmt: skip
_FOLDERS = {"Runtime": "/run", "State": "/var/lib", "Cache": "/var/cache", "Logs": "/var/log", "Configuration": "/etc"}


def environment(root: Root, unit: Unit, *, extra: dict[str, str]) -> dict[str, str]:
    """Return the environment of a unit's process; later sources win."""
    found = {"PATH": _PATH, "LANG": "C.UTF-8"}
    if user := unit.one("Service", "User"):
        import pwd

        entry = pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)
        found |= {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name, "SHELL": entry.pw_shell}
    folders = folders_of(unit)
    for kind in _FOLDERS:
        if paths := [path for one, path, _ in folders if one == kind]:
            found[f"{kind.upper()}_DIRECTORY"] = ":".join(paths)
    found |= assignments(unit)
    for value in unit.all("Service", "EnvironmentFile"):
        path = value.removeprefix("-")
        try:
            with open(root.at(path), encoding="utf-8") as file:
                found |= environment_file(file.read())
        except OSError as error:
            if not value.startswith("-"):
                raise UnitError(f"{unit.name}: failed to load environment files: {path}: {error.strerror}") from None
    return found | extra


def folders_of(unit: Unit) -> list[tuple[str, str, int]]:
    """Return kind, path and mode of RuntimeDirectory= and the like."""
    found = []
    for kind, parent in _FOLDERS.items():
        mode = int(unit.one("Service", f"{kind}DirectoryMode", "0755"), 8)
        found += [(kind, f"{parent}/{name}", mode) for name in unit.names("Service", f"{kind}Directory")]
    return found


def make_folders(root: Root, unit: Unit) -> None:
    uid, gid, _ = account(unit)
    for kind, path, mode in folders_of(unit):
        os.makedirs(root.at(path), exist_ok=True)
        if _is_shared(root, path):
            # Whoever the service runs as makes files of its own there, and moves none of ours.
            os.chown(root.at(path), -1, gid)
            os.chmod(root.at(path), 0o1771 if gid >= 0 else 0o711)
            continue
        os.chmod(root.at(path), mode)
        if kind != "Configuration":
            os.chown(root.at(path), uid, gid)


def _is_shared(root: Root, path: str) -> bool:
    return root.state.startswith(root.at(path) + "/")


def remove_folders(root: Root, unit: Unit) -> None:
    """Remove RuntimeDirectory=, unless it is preserved."""
    if unit.one("Service", "RuntimeDirectoryPreserve", "no") != "no":
        return
    import shutil

    for kind, path, _ in folders_of(unit):
        if kind == "Runtime" and not _is_shared(root, path):
            shutil.rmtree(root.at(path), ignore_errors=True)


def account(unit: Unit) -> tuple[int, int, str]:
    """Return uid, gid and user name of User= and Group=; -1 and "" for unchanged."""
    user, group = unit.one("Service", "User"), unit.one("Service", "Group")
    if not user and not group:
        return -1, -1, ""
    import grp
    import pwd

    try:
        entry = (pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)) if user else None
        gid = entry.pw_gid if entry else -1
        if group:
            gid = int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise UnitError(f"{unit.name}: no such user or group: {error.args[0]}") from None
    return (entry.pw_uid if entry else -1), gid, (entry.pw_name if entry else "")


def start(root: Root, unit: Unit, command: Command, *, extra: dict[str, str], reported: int = -1) -> int:
    """Fork and run one command; ``reported`` is a pipe that closes on exec and carries an error otherwise."""
    pid = os.fork()
    if pid:
        return pid
    try:
        _become(root, unit, command, extra=extra)
    except (OSError, KeyError, ValueError, UnitError) as error:
        text = f"{unit.name}: failed to execute {command.argv[0]}: {getattr(error, 'strerror', None) or error}"
        os.write(2, (text + "\n").encode(errors="replace"))
        if reported >= 0:
            os.write(reported, text.encode(errors="replace"))
        # 203/EXEC, 217/USER, 218/CAPABILITIES, 226/NAMESPACE: systemd.exec(5), "Process exit codes".
        os._exit(getattr(error, "exit_status", 217 if isinstance(error, KeyError) else 203))
    finally:
        os._exit(1)


def _become(root: Root, unit: Unit, command: Command, *, extra: dict[str, str]) -> None:
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.setsid()
    if "WATCHDOG_USEC" in extra:
        extra = {**extra, "WATCHDOG_PID": str(os.getpid())}
    variables = environment(root, unit, extra=extra)
    argv = command.expand(variables)
    _redirect(root, unit)
    os.umask(int(unit.one("Service", "UMask", "0022"), 8))
    _limits(unit)
    if not command.privileged:
        confine.files(root, unit, own=tuple(path for _, path, _ in folders_of(unit)))
        _drop(unit)
    _change_folder(root, unit, variables)
    path = argv[0] if argv[0].startswith("/") else _which(argv[0])
    os.execve(  # noqa: S606
        path, [command.name or argv[0], *argv[1:]], variables
    )


def _which(name: str) -> str:
    for folder in _PATH.split(":"):
        if os.access(f"{folder}/{name}", os.X_OK):
            return f"{folder}/{name}"
    raise FileNotFoundError(2, "No such file or directory", name)


def _redirect(root: Root, unit: Unit) -> None:
    """Redirect input to /dev/null, output to the unit's log or StandardOutput=."""
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    for fd, key in ((1, "StandardOutput"), (2, "StandardError")):
        kind, _, path = unit.one("Service", key, "inherit" if fd == 2 else "journal").partition(":")
        if kind == "null":
            os.dup2(null, fd)
        elif kind == "inherit" and fd == 2:
            os.dup2(1, 2)
        else:
            flags = os.O_TRUNC if kind == "truncate" else os.O_APPEND
            at = root.at(path) if kind in ("append", "file", "truncate") else log_path(root, unit.name)
            os.dup2(os.open(at, os.O_WRONLY | os.O_CREAT | flags, 0o640), fd)


def log_path(root: Root, name: str) -> str:
    os.makedirs(root.logs, exist_ok=True)
    return f"{root.logs}/{name}.log"


def _limits(unit: Unit) -> None:
    desired = [(name, unit.one("Service", f"Limit{name}")) for name in _LIMITS]
    if not any(value for _, value in desired):
        return
    import resource

    for name, value in desired:
        number = getattr(resource, f"RLIMIT_{name}", None)
        if not value or number is None:
            continue
        soft, hard = limit(value)
        try:
            resource.setrlimit(number, (soft, hard))
        except (ValueError, OSError) as error:
            most = resource.getrlimit(number)[1]  # a container may not raise what it was given
            resource.setrlimit(number, (most, most))
            sys.stderr.write(f"{unit.name}: Limit{name}={value} is {most} here: {error}\n")


def _drop(unit: Unit) -> None:
    uid, gid, user = account(unit)
    left = confine.bound(unit)
    asked = confine.capabilities(unit, "AmbientCapabilities", default=frozenset())
    if missing := sorted(asked - left):
        # systemd would end it with 218; a node has less than a machine, and the rest of the service is worth having.
        names = ", ".join(f"CAP_{confine.CAPABILITIES[number].upper()}" for number in missing)
        sys.stderr.write(f"{unit.name}: AmbientCapabilities={names}: not available on a node; started without it\n")
        sys.stderr.flush()
    if gid >= 0:
        os.setgid(gid)
    if user:
        os.initgroups(user, gid)
    _join_groups(unit)
    if uid >= 0:
        confine.keep_for(asked & left)
        os.setuid(uid)
    confine.raise_ambient(asked & left)
    confine.no_new_privileges(unit)


def _join_groups(unit: Unit) -> None:
    if names := unit.names("Service", "SupplementaryGroups"):
        import grp

        gids = [int(name) if name.isdigit() else grp.getgrnam(name).gr_gid for name in names]
        os.setgroups(sorted({*os.getgroups(), *gids}))


def _change_folder(root: Root, unit: Unit, variables: dict[str, str]) -> None:
    folder = unit.one("Service", "WorkingDirectory")
    path = folder.removeprefix("-")
    try:
        os.chdir(variables.get("HOME", "/root") if path == "~" else root.at(path) if path else "/")
    except OSError:
        if not folder.startswith("-"):
            raise
        os.chdir("/")
