"""A health agent as a process of its own, with everything that it keeps in one folder."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from waiting import eventually

PACKAGES = [Path(__file__).parents[2] / "containers/health-agent", Path(__file__).parents[2] / "containers/common"]
XID_79 = "NVRM: Xid (PCI:{bus:04x}:05:00): 79, pid=1, name=python, GPU has fallen off the bus."


def agent_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PACKAGES)), **(more or {})}


class RunningAgent:
    """Start it as often as wanted: what it keeps stays."""

    def __init__(self, folder: Path, *, python: str = sys.executable, **settings: Any) -> None:
        self.folder = folder
        self.python = python
        self.kernel_log = folder / "kmsg"
        self.events = folder / "events.jsonl"
        self.kernel_log.touch()
        self.settings = {
            "kernel_log.path": str(self.kernel_log),
            "events.path": str(self.events),
            "state.path": str(folder / "state/state.json"),
            "socket.path": str(folder / "agent.sock"),
            "status.path": str(folder / "status.sock"),
            "node.instance_id": "i-00000000000000001",
            "node.host": "ip-10-1-0-1",
            "mounts.paths": "",
            "disks.paths": "",
            "nvml.library": "",
            "fabric.root": str(folder / "infiniband"),
            "checks.directory": "",
            **{name.replace("__", "."): value for name, value in settings.items()},
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.environment = agent_environment()
        self.prefix: tuple[str, ...] = ()
        """What starts it, such as a program that takes rights away."""

    def command(self, name: str, *more: str) -> list[str]:
        path = self.folder / "agent.json"
        path.write_text(json.dumps(self.settings))
        return [self.python, "-m", "holdfast_agent", name, "--config", str(path), *more]

    def start(self) -> None:
        command = [*self.prefix, *self.command("run")]
        with (self.folder / "said").open("ab") as said:
            self.process = subprocess.Popen(
                command,
                stdout=said,
                stderr=said,
                stdin=subprocess.DEVNULL,
                env=self.environment,
            )
        pid = self.process.pid
        eventually(lambda: self.status_or_none().get("pid") == pid or self.process is None, "the agent")

    def say(self, *lines: str) -> None:
        with self.kernel_log.open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))

    def status_or_none(self) -> dict[str, Any]:
        from holdfast_agent.status import ask_status

        try:
            return ask_status(self.folder / "status.sock", timeout_s=5.0)
        except (OSError, ValueError):
            return {}

    def told(self, *kinds: str) -> list[dict[str, Any]]:
        if not self.events.exists():
            return []
        lines = self.events.read_text().splitlines()
        return [event for event in map(json.loads, filter(None, lines)) if event["kind"] in kinds]

    def said(self) -> str:
        return (self.folder / "said").read_text()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def end(self) -> int:
        assert self.process is not None
        self.process.terminate()
        code = self.process.wait(timeout=30)
        self.process = None
        return code
