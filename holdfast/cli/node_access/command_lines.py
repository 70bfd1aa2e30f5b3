"""
Command lines for sessions, and their framed output. Pure.

A session has one output and no exit code: the agent joins standard output and error. So the line that is sent runs the
program between ``base64``, marks the lines of each stream, and ends with the exit code. The agent splits it into words
as a POSIX shell does (``agent/session/shell/shell_unix.go``).
"""

import base64
import gzip
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence

MOST_CHARACTERS = 65_535
"""Of a parameter's value (Systems Manager API reference, StartSession)."""
_ROOT = 'if [ "$(id -u)" = 0 ]; then exec "$@"; else exec sudo -n -- "$@"; fi'
_USER = """user=$1; shift
entry=$(getent passwd "$user") || { echo "no user '$user' on this node" >&2; exit 1; }
field() { printf %s "$entry" | cut -d : -f "$1"; }
set -- env -i "PATH=$PATH" LANG=C.UTF-8 "HOME=$(field 6)" "SHELL=$(field 7)" "USER=$user" "LOGNAME=$user" "$@"
[ "$user" = root ] || set -- setpriv --reuid "$(field 3)" --regid "$(field 4)" --init-groups -- "$@"
exec "$@"
"""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin:/opt/slurm/sbin"
"""The last two: Slurm of HyperPod's AMI."""
_FRAMED = """input=$1; shift
run() { if [ -n "$input" ]; then printf %s "$input" | base64 -d | gzip -dc | "$@"; else "$@" < /dev/null; fi; }
exec 3>&1
code=$({ { { run "$@" 3>&- 4>&-; echo $? >&4; } 2>&1 1>&5 5>&- | base64 | sed -u s/^/2/ >&3; } 5>&1 |
  base64 | sed -u s/^/1/ >&3; } 4>&1)
echo "=$code"
"""
_LOGIN = 'cd "$HOME" 2>/dev/null || cd /; . /etc/profile; exec "$@"'
_ON_TERMINAL = """mark=$1; shift
"$@"
printf '\\036%s:%d\\036' "$mark" "$?"
"""
_LINE = re.compile(rb"([12])([A-Za-z0-9+/=]*)|=(\d{1,3})")


class OutputError(Exception):
    """The output of a session is not that of the line that was sent."""


def framed(
    argv: Sequence[str], *, user: str | None = None, text: str | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Return the line for a command. Raises: ValueError: too long."""
    packed = "" if text is None else base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    words = ["/bin/sh", "-c", _FRAMED, "framed", packed, *_as_user(argv, user=user, env=env)]
    return _checked(["/bin/sh", "-c", _ROOT, "root", *words])


def parse_framed(argv: Sequence[str], output: bytes) -> "subprocess.CompletedProcess[bytes]":
    """Return streams and exit code. Raises: OutputError: the output has no end, or another form."""
    parts: dict[bytes, list[bytes]] = {b"1": [], b"2": []}
    code = None
    for line in output.splitlines():
        found = _LINE.fullmatch(line.strip())
        if found is None:
            continue
        if found[3] is not None:
            code = int(found[3])
        else:
            parts[found[1]].append(found[2])
    if code is None:
        last = output.decode(errors="replace").strip().rpartition("\n")[2][-300:]
        raise OutputError(last or "the session ended without the exit code of its command")
    try:
        streams = {name: base64.b64decode(b"".join(text)) for name, text in parts.items()}
    except ValueError as error:
        raise OutputError(f"the output of the session is damaged: {error}") from None
    return subprocess.CompletedProcess(list(argv), code, streams[b"1"], streams[b"2"])


def on_terminal(argv: Sequence[str], *, user: str, mark: str, env: Mapping[str, str]) -> str:
    """Return the line for a program on a terminal; its exit code follows as ``exit_code_of`` finds it."""
    words = ["/bin/sh", "-c", _ON_TERMINAL, "terminal", mark, *_as_user(at_login(argv), user=user, env=env)]
    return _checked(["/bin/sh", "-c", _ROOT, "root", *words])


def at_login(argv: Sequence[str]) -> list[str]:
    """Return the words that run a program as after a login: with the system's profile, in the home directory."""
    return ["/bin/sh", "-c", _LOGIN, "login", *argv]


def exit_code_of(output: bytes, *, mark: str) -> tuple[bytes, int | None]:
    """Return the output without the mark, and the exit code; None if it is not there."""
    found = re.search(rb"\x1e%s:(\d{1,3})\x1e" % mark.encode(), output)
    if found is None:
        return output, None
    return output[: found.start()] + output[found.end() :], int(found[1])


def _as_user(argv: Sequence[str], *, user: str | None, env: Mapping[str, str] | None) -> list[str]:
    given = [f"{name}={value}" for name, value in (env or {}).items()]
    return ["env", f"PATH={_PATH}", "/bin/sh", "-c", _USER, "user", user or "root", *given, *argv]


def _checked(words: Sequence[str]) -> str:
    line = shlex.join(words)
    if len(line) > MOST_CHARACTERS:
        raise ValueError(f"got a command of {len(line):,} characters; allowed: {MOST_CHARACTERS:,} in a session")
    return line
