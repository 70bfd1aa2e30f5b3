"""Ending the programs of a local EKS, and what must have survived it: writes that were acknowledged, and running pods.

Which program is whose is found over `/proc`: by its arguments, and by the home that its files lie in.
"""

import contextlib
import os
import secrets
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from kubernetes_http import Api, Refused

CONTROL_PLANE = ("kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler")
ON_NODES = ("kubelet", "containerd")
WITHIN_S = 10.0
QUIET_LOAD = 3.0


@dataclass(frozen=True, kw_only=True)
class Process:
    """One running program; its start tells it from another one with its number."""

    pid: int
    start_ticks: int
    node: str = ""
    """The name of the host that it believes to be on."""

    def signal(self, number: signal.Signals) -> None:
        """Send a signal. The process must still be the one that was found."""
        assert _start_ticks(self.pid) == self.start_ticks, f"process {self.pid} is gone"
        os.kill(self.pid, number)

    def is_over(self) -> bool:
        return _start_ticks(self.pid) != self.start_ticks


def is_program(argv: Sequence[str], name: str) -> bool:
    """Whether a command line is that of a component: the program itself, or one program that holds several."""
    return name in [Path(word).name for word in argv[:2]] and not argv[0].endswith("/sh")


def belongs(*, argv: Sequence[str], mounts: str, home: str) -> bool:
    """Whether a process is of a home: it is told of files there, or its root lies there."""
    if any(f"{home}/" in word for word in argv):
        return True
    roots = [line for line in mounts.splitlines() if line.split()[4:5] == ["/"]]
    return any(f"{home}/" in line for line in roots)


def processes(home: Path, name: str) -> list[Process]:
    """All that run of a component, in the order of their numbers."""
    found = []
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda one: int(one.name)):
        with contextlib.suppress(OSError):
            argv = [word for word in (folder / "cmdline").read_bytes().decode(errors="replace").split("\0") if word]
            if not argv or not is_program(argv, name):
                continue
            if belongs(argv=argv, mounts=(folder / "mountinfo").read_text(), home=str(home)):
                ticks = _start_ticks(int(folder.name))
                if ticks is not None:
                    found.append(Process(pid=int(folder.name), start_ticks=ticks, node=_address(folder)))
    return found


def allowed_s(load: float) -> float:
    """Seconds that a recovery may take: ten on a machine that is not overloaded, as many times more as it is."""
    return WITHIN_S * max(1.0, load / QUIET_LOAD)


@dataclass
class Ledger:
    """What was written and acknowledged, and how long nothing was."""

    acknowledged: dict[str, str] = field(default_factory=dict)
    """Name -> content."""
    failed: int = 0
    longest_silence_s: float = 0.0

    def lost(self, there: Mapping[str, str]) -> list[str]:
        """Names of acknowledged writes that are not there, or with another content."""
        return [name for name, content in self.acknowledged.items() if there.get(name) != content]


@contextmanager
def writing(api: Api, namespace: str) -> Iterator[Ledger]:
    """Write small objects one after the other, all the while, whatever becomes of the API server."""
    ledger, over = Ledger(), threading.Event()
    path, prefix = f"/api/v1/namespaces/{namespace}/configmaps", f"written-{secrets.token_hex(3)}"

    def write() -> None:
        last = time.monotonic()
        number = 0
        while not over.is_set():
            number += 1
            name, content = f"{prefix}-{number}", f"{number} at {time.time()}"
            body = {"metadata": {"name": name, "labels": {"written": "yes"}}, "data": {"content": content}}
            try:
                api.post(path, body)
            except (OSError, Refused, ValueError):
                ledger.failed += 1
                over.wait(0.05)
                continue
            ledger.acknowledged[name] = content
            now = time.monotonic()
            ledger.longest_silence_s = max(ledger.longest_silence_s, now - last)
            last = now
            over.wait(0.01)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield ledger
    finally:
        over.set()
        writer.join(60)


def read_back(api: Api, namespace: str) -> dict[str, str]:
    """Name -> content of what `writing` wrote, as it is now."""
    listed = api.get(f"/api/v1/namespaces/{namespace}/configmaps", labelSelector="written")["items"]
    return {one["metadata"]["name"]: one["data"]["content"] for one in listed}


def lives(pods: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Pod -> what changes when a container of it is started again: which one it is, since when, how often."""
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            *(_life(one) for one in pod["status"].get("containerStatuses") or ()),
        )
        for pod in pods
    }


def _life(container: Mapping[str, Any]) -> str:
    since = container.get("state", {}).get("running", {}).get("startedAt")
    return f"{container.get('containerID')} {since} {container['restartCount']}"


def _start_ticks(pid: int) -> int | None:
    """When a process started; None for one that is over, a zombie too."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if words[0] == "Z" else int(words[19])


def _address(folder: Path) -> str:
    """The address of the process' network that is none of its loopback's; tells which node it is on."""
    text = (folder / "net" / "fib_trie").read_text()
    lines = text.splitlines()
    for before, line in pairwise(lines):
        if "/32 host LOCAL" in line and not (address := before.split()[-1]).startswith("127."):
            return address
    return ""
