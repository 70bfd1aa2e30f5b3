"""The nodes' systemctl below a root of its own: unit files in a folder, and the programs run on it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waiting import eventually

PROGRAMS = Path(__file__).parents[2] / "holdfast/localcloud/image/node"
ENTRY = f"import sys; sys.path.insert(0, {str(PROGRAMS)!r}); import systemctl; "


class Machine:
    """Unit files below a folder, and the programs run on it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def unit(self, name: str, text: str) -> None:
        path = self.root / "etc/systemd/system" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def service(self, name: str, *lines: str) -> None:
        self.unit(f"{name}.service", "[Service]\n" + "\n".join(lines) + "\n")

    def run(self, *argv: str, program: str = "systemctl") -> "subprocess.CompletedProcess[str]":
        code = ENTRY + f"sys.exit(systemctl.{program}(sys.argv[1:]))"
        environment = {**os.environ, "HOLDFAST_SYSTEMD_ROOT": str(self.root)}
        command = [sys.executable, "-I", "-S", "-c", code, *argv]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)

    def ok(self, *argv: str) -> str:
        done = self.run(*argv)
        assert done.returncode == 0, (argv, done.stdout, done.stderr)
        return done.stdout.strip()

    def show(self, name: str, key: str) -> str:
        return self.ok("show", "-p", key, "--value", name)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def with_environment(value: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if value.encode() in path.read_bytes() and alive(int(path.parent.name)):
                found.append(int(path.parent.name))
        except OSError:  # noqa: PERF203  processes end while we look
            continue
    return found


@contextmanager
def systemctl_machine(root: Path) -> Iterator[Machine]:
    """One whose services are stopped at the end; nothing of it stays."""
    made = Machine(root)
    yield made
    for record in (root / "run/holdfast/units").glob("*.json"):
        made.run("stop", record.stem)
    eventually(lambda: not with_environment(f"HOLDFAST_SYSTEMD_ROOT={root}"), "processes are left")
