"""docker: names of images, and a sleeping process per container. Nothing is pulled, no image runs."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import sys

from .common import record, recorded, refuse

_PLACE = "/run/holdfast/containers"
_ECR = re.compile(r"([0-9]{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?)/.+")
_RUN_VALUES = frozenset({
    "--restart", "--name", "--gpus", "--net", "--network", "--cap-add", "-v", "--volume", "-p", "--publish", "--pid",
    "-e", "--env", "--privileged", "--user", "-u", "--runtime", "--hostname", "-w", "--entrypoint",
})  # fmt: skip


def main(argv: list[str]) -> int:
    verb, rest = (argv[0], argv[1:]) if argv else ("", [])
    if verb in ("--version", "version"):
        print("Docker version 0.0.0, build holdfast-stand-in")
        return 0
    known = {"ps": _ps, "rm": _rm, "stop": _stop, "start": _start, "login": _login, "pull": _pull, "run": _run}
    if verb not in known:
        return refuse("docker", argv, status=125)
    if not _daemon_runs():
        sys.stderr.write(
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n"
        )
        return 1
    return known[verb](rest)


def _daemon_runs() -> bool:
    try:
        with open("/run/holdfast/units/docker.service.json", encoding="utf-8") as file:
            return bool(json.load(file)["active"] == "active")
    except (OSError, ValueError):
        return False


def _containers() -> list[dict[str, object]]:
    found = []
    for entry in sorted(os.listdir(_PLACE)) if os.path.isdir(_PLACE) else []:
        with open(f"{_PLACE}/{entry}", encoding="utf-8") as file:
            one = json.load(file)
        one["running"] = bool(one["pid"]) and os.path.exists(f"/proc/{one['pid']}")
        found.append(one)
    return found


def _save(one: dict[str, object]) -> None:
    os.makedirs(_PLACE, exist_ok=True)
    with open(f"{_PLACE}/{one['name']}", "w", encoding="utf-8") as file:
        json.dump(one, file)


def _ps(argv: list[str]) -> int:
    everything = quiet = False
    filters = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word in ("-a", "--all"):
            everything = True
        elif word in ("-q", "--quiet"):
            quiet = True
        elif word in ("-f", "--filter") and rest:
            filters.append(rest.pop(0))
        elif word.startswith("--filter="):
            filters.append(word.partition("=")[2])
        else:
            return refuse("docker ps", argv, status=125)
    rows = []
    for one in _containers():
        state = "running" if one["running"] else "exited"
        desired = everything or one["running"] or any(text.startswith("status=") for text in filters)
        for text in filters:
            key, _, value = text.partition("=")
            if key not in ("name", "status"):
                return refuse("docker ps", argv, status=125)
            desired = desired and (value in str(one["name"]) if key == "name" else value == state)
        if desired:
            shown = "Up" if one["running"] else "Exited (137)"
            rows.append(str(one["id"]) if quiet else f"{one['id']}   {one['image']}   {shown}   {one['name']}")
    if not quiet:
        print("CONTAINER ID   IMAGE   STATUS   NAMES")
    for row in rows:
        print(row)
    return 0


def _named(name: str) -> dict[str, object] | None:
    return next((one for one in _containers() if name in (one["name"], one["id"])), None)


def _rm(argv: list[str]) -> int:
    force, names = "-f" in argv or "--force" in argv, [word for word in argv if not word.startswith("-")]
    status = 0
    for name in names:
        one = _named(name)
        if one is None:
            sys.stderr.write(f"Error response from daemon: No such container: {name}\n")
            status = status if force else 1  # as docker 20.10.15 and later: rm -f of nothing is no failure
        elif one["running"] and not force:
            sys.stderr.write(f"Error response from daemon: cannot remove container {name!r}: container is running\n")
            status = 1
        else:
            _end(one)
            os.unlink(f"{_PLACE}/{one['name']}")
            print(name)
    return status


def _stop(argv: list[str]) -> int:
    for name in argv:
        one = _named(name)
        if one is None:
            sys.stderr.write(f"Error response from daemon: No such container: {name}\n")
            return 1
        _end(one)
        print(name)
    return 0


def _start(argv: list[str]) -> int:
    for name in argv:
        one = _named(name)
        if one is None:
            sys.stderr.write(f"Error response from daemon: No such container: {name}\n")
            return 1
        if not one["running"]:
            _save({**one, "pid": _sleeper()})
        print(name)
    return 0


def _end(one: dict[str, object]) -> None:
    if one["running"]:
        os.kill(int(str(one["pid"])), signal.SIGKILL)
    _save({**one, "pid": 0})


def _login(argv: list[str]) -> int:
    if "--password-stdin" not in argv or not argv or argv[-1].startswith("-"):
        return refuse("docker login", argv)
    if not sys.stdin.read().strip():
        sys.stderr.write("Error: Password Empty\n")
        return 1
    record("docker-logins", argv[-1])
    print("Login Succeeded")
    return 0


def _pull(argv: list[str]) -> int:
    if len(argv) != 1:
        return refuse("docker pull", argv)
    match = _ECR.fullmatch(argv[0])
    if match is None:
        registry = argv[0].partition("/")[0] if "." in argv[0].partition("/")[0] else "registry-1.docker.io"
        sys.stderr.write(f"Error response from daemon: Get https://{registry}/v2/: lookup {registry}: no such host\n")
        return 1
    if not recorded("docker-logins", match[1]):
        sys.stderr.write(f"Error response from daemon: Head https://{match[1]}/v2/: no basic auth credentials\n")
        return 1
    record("docker-images", argv[0])
    print(f"Status: Downloaded newer image for {argv[0]}\n{argv[0]}")
    return 0


def _run(argv: list[str]) -> int:
    options: dict[str, str] = {}
    rest, detached = list(argv), False
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        name, separator, value = word.partition("=")
        if word in ("-d", "--detach"):
            detached = True
        elif name in _RUN_VALUES:
            options[name] = value if separator or name == "--privileged" else rest.pop(0)
        else:
            return refuse("docker run", argv, status=125)
    if not detached or not rest:
        return refuse("docker run", argv, status=125)
    image, name = rest[0], options.get("--name") or secrets.token_hex(4)
    if not recorded("docker-images", image) and (status := _pull([image])) != 0:
        return 125 if status else 0
    if _named(name) is not None:
        sys.stderr.write(f'docker: Error response from daemon: Conflict. The container name "/{name}" is in use.\n')
        return 125
    identity = secrets.token_hex(32)
    restart = options.get("--restart", "no")
    _save({"name": name, "id": identity[:12], "image": image, "restart": restart, "args": rest[1:], "pid": _sleeper()})
    print(identity)
    return 0


def _sleeper() -> int:
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.setsid()
        if (grandchild := os.fork()) != 0:
            os.write(write, str(grandchild).encode())
            os._exit(0)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.execv("/bin/sleep", ["container", "infinity"])  # noqa: S606
    os.waitpid(child, 0)
    pid = int(os.read(read, 32))
    os.close(read)
    os.close(write)
    return pid
