"""One running node: run programs in it, freeze, disconnect, destroy."""

import fcntl
import os
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from holdfast.localcloud.confined import Inside
from holdfast.localcloud.home import remove_tree_quietly
from holdfast.localcloud.nodes.kernel import entering, proc

from . import cgroups
from .fabric import Fabric, connect_in, listen_in, run_ip, set_network
from .spec import NodeError, NodeRecord, NodeSpec

_KILL_TIMEOUT_S = 10.0
_KILL_RETRY_S = 0.01
_SETTLE_S = 0.002
_TIOCSPTLCK, _TIOCGPTN = 0x40045431, 0x80045430  # asm-generic/ioctls.h
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_JOIN = 'while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs"; shift; done; shift; exec "$@"'
_Stream = int | IO[bytes] | None


class Node:
    """A booted node, of this process or another. Thread-safe: it has no state."""

    def __init__(self, *, record: NodeRecord, directory: Path, fabric: Fabric, home: Path) -> None:
        self._record = record
        self._directory = directory
        self._fabric = fabric
        self._home = home

    def __repr__(self) -> str:
        return f"Node({self.spec.instance_id} {self.spec.hostname} {self.spec.address} pid {self.pid})"

    @property
    def spec(self) -> NodeSpec:
        return self._record.spec

    @property
    def pid(self) -> int:
        return self._record.pid

    @property
    def start_ticks(self) -> int:
        """Return PID 1's start; with ``pid`` a unique identity."""
        return self._record.start_ticks

    @property
    def root(self) -> Path:
        """
        Return the root of the running node, mounts included; for tests and messages.

        Absolute links below it lead to the machine's files: use ``inside`` for what may be a link.
        """
        return Path(f"/proc/{self.pid}/root")

    def inside(self, path: str) -> Inside:
        """Return a path of the running node, links resolved as on the node."""
        return Inside(root=self.root, path=path)

    def outside(self, path: str) -> Inside:
        """
        Return the machine's path of the node's own version of ``path``, also after its death.

        It exists once the node has written it; not for /run, /tmp and mounts.
        """
        layers = self._record.layers
        index = max(i for i, at in enumerate(layers) if f"{path}/".startswith(at.rstrip("/") + "/"))
        upper = self._directory / "layers" / str(index) / "upper"
        return Inside(root=upper, path=path[len(layers[index]) :].lstrip("/"))

    def write_file(self, path: str, content: bytes, *, mode: int = 0o644, owner: str = "root") -> None:
        """Replace a file of the running node atomically. ``owner``: a user's name."""
        self._require_alive()
        account = self._account(owner) if owner != "root" else {"uid": "0", "gid": "0"}
        with self.inside(path).fresh(make=0o755) as file:
            os.fchown(file.fileno(), int(account["uid"]), int(account["gid"]))
            os.fchmod(file.fileno(), mode)
            file.write(content)

    def read_file(self, path: str) -> bytes:
        """Return a file of the node: from its live root, or from its writes after its death."""
        return (self.inside(path) if self.alive() else self.outside(path)).read_bytes()

    # --- life and death

    def alive(self) -> bool:
        return proc.alive(pid=self.pid, ticks=self._record.start_ticks)

    def wait_dead(self, timeout_s: float) -> bool:
        """Wait until PID 1 is gone, at most ``timeout_s``; True if it is. Wakes within a millisecond."""
        with proc.pidfd(pid=self.pid, ticks=self._record.start_ticks) as fd:
            return fd is None or proc.wait_ended(fd, timeout_s=timeout_s)

    def destroy(self) -> None:
        """Power off: every process and the network are gone at once. Its files stay until ``remove``."""
        self.kill()
        self._fabric.delete_link(self._record.link)
        if self.spec.runs_containers:
            cgroups.remove(home=self._home, instance_id=self.spec.instance_id)

    def kill(self) -> None:
        """Kill every process; the network vanishes with them."""
        entrances = proc.entrances(proc.members(self.pid)) if self.alive() else []
        with proc.pidfd(pid=self.pid, ticks=self._record.start_ticks) as fd:
            if fd is None:
                return
            signal.pidfd_send_signal(fd, signal.SIGKILL)
            deadline = time.monotonic() + _KILL_TIMEOUT_S
            while not proc.wait_ended(fd, timeout_s=_KILL_RETRY_S):
                if time.monotonic() > deadline:
                    raise NodeError(
                        f"{self.spec.instance_id}: PID 1 ({self.pid}) survives SIGKILL; restart the machine"
                    )
                # Not SIGKILL: their dead programs would pass to the machine's init, which may take seconds to reap.
                proc.signal_all(entrances, signal.SIGCONT)

    def remove(self) -> None:
        self.destroy()
        remove_tree_quietly(self._directory)

    def freeze(self) -> None:
        """Stop every process; sockets stay open, as when a kernel hangs."""
        self._set_running(to=False)

    def thaw(self) -> None:
        self._set_running(to=True)

    def _set_running(self, *, to: bool) -> None:
        self._require_alive()
        deadline = time.monotonic() + _KILL_TIMEOUT_S
        signalled: set[int] = set()
        while time.monotonic() < deadline:  # more than once, since a process may fork between listing and signal
            inside = proc.members(self.pid)
            pids = inside + proc.entrances(inside)
            wrong = [pid for pid in pids if pid not in signalled or not _is(pid, running=to)]
            if not wrong:
                return
            proc.signal_all(wrong, signal.SIGCONT if to else signal.SIGSTOP)
            signalled |= set(wrong)
            time.sleep(_SETTLE_S)
        raise NodeError(
            f"{self.spec.instance_id}: processes {wrong} did not {'continue' if to else 'stop'}; destroy the node"
        )

    def listen(self, address: str, port: int) -> socket.socket:
        """Return a listening TCP socket inside the node's network, owned by this process."""
        self._require_alive()
        return listen_in(Path(f"/proc/{self.pid}/ns/net"), address=address, port=port)

    def configure_network(self, *commands: str, settings: Mapping[str, str] | None = None) -> None:
        """Run ``ip`` commands in the node's network; write ``settings``, paths below /proc/sys/net."""
        self._require_alive()
        namespace = Path(f"/proc/{self.pid}/ns/net")
        if commands:
            run_ip(*commands, namespace=namespace)
        if settings:
            set_network(settings, namespace=namespace)

    def cut(self) -> None:
        self._fabric.set_link(self._record.link, up=False)

    def heal(self) -> None:
        self._fabric.set_link(self._record.link, up=True)

    # --- running things

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        input: str | None = None,  # noqa: A002  the name subprocess uses
        cwd: str = "/",
        login: bool = False,
    ) -> "subprocess.CompletedProcess[str]":
        """
        Run a program to its end; killed at the timeout (``subprocess.TimeoutExpired``).

        ``user``: of the node. Default: root. ``login`` sources the node's /etc/profile first.
        """
        process = self.popen(
            argv, env=env, user=user, cwd=cwd, login=login, stdin=subprocess.PIPE if input is not None else None,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            out, err = process.communicate(None if input is None else input.encode(), timeout=timeout_s)
        except BaseException:
            kill_group(process)
            process.communicate()
            raise
        return subprocess.CompletedProcess(
            list(argv), process.returncode, out.decode(errors="replace"), err.decode(errors="replace")
        )

    def popen(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        cwd: str = "/",
        login: bool = False,
        stdin: _Stream = None,
        stdout: _Stream = None,
        stderr: _Stream = None,
    ) -> "subprocess.Popen[bytes]":
        """Start a program. Default streams: /dev/null. End it with ``kill_group``, not with ``Popen.kill``."""
        command, environment = self._command(argv, env=env, user=user, cwd=cwd, login=login)
        streams = [subprocess.DEVNULL if stream is None else stream for stream in (stdin, stdout, stderr)]
        return entering.start(
            command, env=environment, containers=self.spec.runs_containers, on_abandoned=kill_group,
            stdin=streams[0], stdout=streams[1], stderr=streams[2], start_new_session=True,
        )  # fmt: skip

    def exec_tty(self, argv: Sequence[str], *, user: str | None = None) -> int:
        """Run a program on the caller's terminal in a login environment, as ssh; return its exit status."""
        program = list(argv) or [self._account(user or "root")["shell"], "-l"]
        if sys.stdin.isatty() and self.inside("/usr/bin/script").exists():
            # A terminal of the node's own devpts: on the machine's, tty(1), sudo and job control fail.
            program = ["script", "-qec", shlex.join(program), "/dev/null"]
        terminal = {name: os.environ[name] for name in ("TERM",) if name in os.environ}
        home = self._account(user or "root")["home"]
        command, environment = self._command(program, env=terminal, user=user, cwd=home, login=True)
        return entering.start(
            command, env=environment, containers=self.spec.runs_containers, on_abandoned=subprocess.Popen.kill
        ).wait()

    def terminal(self) -> tuple[int, int]:
        """Return descriptors of a new terminal of the node's devpts: master and slave."""
        self._require_alive()
        devices = self.root / "dev" / "pts"
        how = os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC
        master = os.open(devices / "ptmx", how)
        try:
            fcntl.ioctl(master, _TIOCSPTLCK, struct.pack("i", 0))
            number = struct.unpack("I", fcntl.ioctl(master, _TIOCGPTN, bytes(4)))[0]
            return master, os.open(devices / str(number), how)
        except BaseException:
            os.close(master)
            raise

    def connect(self, port: int) -> socket.socket:
        """Connect to a port of the node's loopback interface. Raises: OSError."""
        self._require_alive()
        return connect_in(Path(f"/proc/{self.pid}/ns/net"), port=port)

    def _command(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None, user: str | None, cwd: str, login: bool
    ) -> tuple[list[str], dict[str, str]]:
        self._require_alive()
        account = self._account(user or "root")
        command = ["nsenter", "-t", str(self.pid), "-m", "-u", "-i", "-n", "-p", "-r", "-w", "--"]
        if self.spec.runs_containers:  # what is started becomes part of the node, also for its runtime
            own = [str(path) for path in cgroups.of(home=self._home, instance_id=self.spec.instance_id)]
            command = ["/bin/sh", "-c", _JOIN, "join", *own, "--", *command[:-1], "-C", "--"]
        if user not in (None, "root"):
            command += ["setpriv", "--reuid", account["uid"], "--regid", account["gid"], "--init-groups", "--"]
        if cwd != "/":
            command += ["env", "-C", cwd, "--"]
        if login:
            command += ["/bin/sh", "-c", '. /etc/profile; exec "$@"', "sh"]
        base = {"PATH": _PATH, "LANG": "C.UTF-8", "HOME": account["home"], "SHELL": account["shell"]}
        base |= {"USER": account["name"], "LOGNAME": account["name"]}
        return [*command, *argv], base | dict(env or {})

    def _account(self, user: str) -> dict[str, str]:
        passwd = self.inside("/etc/passwd").read_bytes().decode(errors="replace")
        match = re.search(rf"^{re.escape(user)}:[^:]*:(\d+):(\d+):[^:]*:([^:]*):([^:\n]*)$", passwd, re.MULTILINE)
        if match is None:
            names = ", ".join(line.split(":")[0] for line in passwd.splitlines())
            raise NodeError(f"{self.spec.instance_id}: no user {user!r}; use one of {names}")
        uid, gid, home, shell = match.groups()
        return {"name": user, "uid": uid, "gid": gid, "home": home, "shell": shell or "/bin/sh"}

    def _require_alive(self) -> None:
        if not self.alive():
            raise NodeError(f"{self.spec.instance_id} ({self.spec.hostname}) is not running; boot it first")


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """SIGKILL a program of ``Node.popen`` and its processes, except daemons."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def _is(pid: int, *, running: bool) -> bool:
    state = proc.state(pid)
    return state in ("Z", "X", "") or (state not in ("T", "t") if running else state in ("T", "t", "D"))
