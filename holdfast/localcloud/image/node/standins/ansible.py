"""ansible and ansible-galaxy: single modules on localhost, executed, with ansible's answers and exit statuses."""

from __future__ import annotations

import json
import os
import shlex
from typing import Any, Callable  # noqa: UP035  collections.abc costs start-up time

from .common import refuse

_VERSION = "ansible [core 2.17.7]\n  holdfast's stand-in: modules on localhost"
Arguments = dict[str, str]


class ModuleError(Exception):
    """A module failed; the message is its ``msg``."""

    def __init__(self, msg: str, **more: Any) -> None:
        super().__init__(msg)
        self.more = more


def galaxy(argv: list[str]) -> int:
    if argv[:2] == ["collection", "install"] and argv[2:] == ["ansible.posix"]:
        print("Nothing to do. All requested collections are already installed.")
        return 0
    return refuse("ansible-galaxy", argv)


def main(argv: list[str]) -> int:
    if argv == ["--version"]:
        print(_VERSION)
        return 0
    module = text = ""
    rest = list(argv[1:])
    if argv[:1] != ["localhost"]:
        return refuse("ansible", argv)
    while rest:
        word = rest.pop(0)
        if word == "-m" and rest:
            module = rest.pop(0)
        elif word == "-a" and rest:
            text = rest.pop(0)
        elif word not in ("-b", "--become"):
            return refuse("ansible", argv)
    name = module.removeprefix("ansible.builtin.").removeprefix("ansible.posix.")
    if name not in _MODULES:
        return refuse("ansible", argv)
    if name == "command":
        return _command(text)
    try:
        arguments = dict(word.partition("=")[::2] for word in shlex.split(text))
        answer = _MODULES[name](arguments)
    except (ModuleError, OSError, KeyError) as error:
        answer = {"changed": False, "msg": str(error), **getattr(error, "more", {})}
        print(f"localhost | FAILED! => {json.dumps(answer, indent=4)}")
        return 2
    print(f"localhost | {'CHANGED' if answer.get('changed') else 'SUCCESS'} => {json.dumps(answer, indent=4)}")
    return 0


def _command(text: str) -> int:
    import subprocess

    try:
        done = subprocess.run(shlex.split(text), capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        print(f"localhost | FAILED | rc=2 >>\n[Errno 2] {error.strerror}: {error.filename!r}")
        return 2
    word = "CHANGED" if done.returncode == 0 else "FAILED"
    shown = done.stdout.strip() + ("" if done.returncode == 0 else done.stderr.strip() + "non-zero return code")
    print(f"localhost | {word} | rc={done.returncode} >>\n{shown}")
    return 2 if done.returncode else 0


def _run(*argv: str) -> str:
    import subprocess

    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ModuleError(done.stderr.strip() or done.stdout.strip(), rc=done.returncode)
    return done.stdout


def _file(arguments: Arguments) -> dict[str, Any]:
    path = arguments.get("path") or arguments.get("dest") or arguments.get("name") or ""
    state = arguments.get("state", "file")
    changed = False
    if state == "directory":
        changed = not os.path.isdir(path)
        os.makedirs(path, exist_ok=True)
    elif state == "touch":
        changed = True
        with open(path, "a", encoding="utf-8"):
            os.utime(path)
    elif state == "absent":
        changed = os.path.lexists(path)
        if os.path.isdir(path) and not os.path.islink(path):
            import shutil

            shutil.rmtree(path)
        elif changed:
            os.unlink(path)
        return {"path": path, "state": "absent", "changed": changed}
    elif state == "link":
        changed = _link(arguments["src"], path, force=arguments.get("force", "no") in ("yes", "true"))
    elif state == "file":
        if not os.path.lexists(path):
            raise ModuleError(f"file ({path}) is absent, cannot continue", path=path, state="absent")
    else:
        raise ModuleError(f"value of state must be one of: absent, directory, file, link, touch, got: {state}")
    return {"path": path, "state": state, "changed": _attributes(path, arguments) or changed}


def _link(source: str, path: str, *, force: bool) -> bool:
    if os.path.islink(path) and os.readlink(path) == source:
        return False
    if os.path.lexists(path):
        if os.path.isdir(path) and not os.path.islink(path):
            raise ModuleError(f"refusing to convert from directory to symlink for {path}")
        if not force and not os.path.islink(path):
            raise ModuleError(f"refusing to convert from file to symlink for {path}")
        os.unlink(path)
    os.symlink(source, path)
    return True


def _attributes(path: str, arguments: Arguments) -> bool:
    info, changed = os.lstat(path), False
    if "owner" in arguments or "group" in arguments:
        import grp
        import pwd

        try:
            uid = pwd.getpwnam(arguments["owner"]).pw_uid if "owner" in arguments else -1
            gid = grp.getgrnam(arguments["group"]).gr_gid if "group" in arguments else -1
        except KeyError as error:
            raise ModuleError(f"chown failed: {error.args[0]}") from None
        changed = (uid not in (-1, info.st_uid)) or (gid not in (-1, info.st_gid))
        os.chown(path, uid, gid, follow_symlinks=False)
    if "mode" in arguments and not os.path.islink(path):
        mode = int(arguments["mode"], 8)
        changed = changed or (info.st_mode & 0o7777) != mode
        os.chmod(path, mode)
    return changed


def _mount(arguments: Arguments) -> dict[str, Any]:
    path, state = arguments["path"], arguments.get("state", "")
    if state != "mounted":
        raise ModuleError(f"holdfast's stand-in supports state=mounted, got: {state}")
    fields = [arguments["src"], path, arguments["fstype"], arguments.get("opts", "defaults")]
    line = " ".join([*fields, arguments.get("dump", "0"), arguments.get("passno", "0")])
    with open("/etc/fstab", encoding="utf-8") as file:
        lines = file.read().splitlines()
    kept = [one for one in lines if one.split()[1:2] != [path] or one.startswith("#")]
    changed = line not in lines
    if changed:
        with open("/etc/fstab", "w", encoding="utf-8") as file:
            file.write("\n".join([*kept, line]) + "\n")
    os.makedirs(path, exist_ok=True)
    if not os.path.ismount(path):
        try:
            _run("mount", path)
        except ModuleError as error:
            raise ModuleError(f"Error mounting {path}: {error}") from None
        changed = True
    return {"name": path, "src": arguments["src"], "fstype": arguments["fstype"], "changed": changed}


def _modprobe(arguments: Arguments) -> dict[str, Any]:
    if arguments.get("state", "present") != "present":
        raise ModuleError("holdfast's stand-in supports state=present")
    _run("modprobe", arguments["name"])
    return {"name": arguments["name"], "state": "present", "changed": True}


def _systemd(arguments: Arguments) -> dict[str, Any]:
    if arguments.get("daemon_reload", "no") in ("yes", "true"):
        _run("systemctl", "daemon-reload")
    name, state = arguments.get("name", ""), arguments.get("state", "")
    if not name:
        return {"changed": False}
    verbs = {"started": "start", "stopped": "stop", "restarted": "restart", "reloaded": "reload"}
    if arguments.get("enabled", "") in ("yes", "true"):
        _run("systemctl", "enable", name)
    if state:
        if state not in verbs:
            raise ModuleError(f"value of state must be one of: {', '.join(verbs)}, got: {state}")
        _run("systemctl", verbs[state], name)
    return {"name": name, "state": state, "changed": True}


def _user(arguments: Arguments) -> dict[str, Any]:
    name, home = arguments["name"], arguments.get("home", "")
    if set(arguments) - {"name", "home", "move_home"} or not home:
        raise ModuleError("holdfast's stand-in supports name, home and move_home of an existing user")
    import pwd

    changed = pwd.getpwnam(name).pw_dir != home
    if changed:
        move = ["-m"] if arguments.get("move_home", "no") in ("yes", "true") and not os.path.isdir(home) else []
        _run("usermod", *move, "-d", home, name)
    return {"name": name, "home": home, "state": "present", "changed": changed}


def _apt(arguments: Arguments) -> dict[str, Any]:
    _run("apt-get", "-y", "install", arguments["name"])
    return {"changed": True}


_MODULES: dict[str, Callable[[Arguments], dict[str, Any]]] = {
    "apt": _apt,
    "command": lambda _: {},
    "file": _file,
    "modprobe": _modprobe,
    "mount": _mount,
    "systemd": _systemd,
    "user": _user,
}
