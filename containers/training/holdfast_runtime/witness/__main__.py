"""``python -m holdfast_runtime.witness``: the service of one cluster, beside Slurm's controller."""

import argparse
import asyncio
import contextlib
import os
import pwd
import socket
import sys
from collections.abc import Sequence

from holdfast_runtime.control import listen
from holdfast_runtime.witness.finding import PORT
from holdfast_runtime.witness.service import Service


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="holdfast-witness", description=__doc__)
    parser.add_argument("--host", default="", help="Address to listen at. Default: all")
    parser.add_argument("--port", type=int, default=PORT, help=f"Default: {PORT}, which requires root")
    parser.add_argument("--user", default="nobody", help="Account to switch to when started by root. Default: nobody")
    values = parser.parse_args(arguments)
    try:
        door = listen(values.host, port=values.port)
        become(values.user)
    except (OSError, KeyError) as error:
        print(f"holdfast-witness: port {values.port} as {values.user}: {error}", file=sys.stderr)
        return 2
    host, port = door.getsockname()[:2]
    print(f"holdfast-witness: serves at {host} port {port}", file=sys.stderr, flush=True)
    notify("READY=1")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(Service(on_sweep=lambda: notify("WATCHDOG=1")).serve(door))
    return 0


def become(user: str) -> None:
    """Give up root. Raises KeyError for an account that there is not, OSError where it may not be left."""
    if os.geteuid() != 0:
        return
    account = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)


def notify(state: str) -> None:
    """Tell systemd, as sd_notify(3) does; nobody elsewhere."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if path:
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line,
        ):
            line.sendto(state.encode(), "\0" + path[1:] if path.startswith("@") else path)


if __name__ == "__main__":
    sys.exit(main())
