"""A Debian or Ubuntu of another suite in a folder, in mount and PID namespaces of its own; kept for later runs."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

PACKAGES = (
    "apt",
    "ca-certificates",
    "git",
    "make",
    "sudo",
    "curl",
    "procps",
    "python3",
    "python3-venv",
    "nodejs",
    "npm",
)
SETTINGS = (
    "PIP_",
    "UV_",
    "npm_config_",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT",
    "REQUESTS_CA",
    "NODE_EXTRA",
)
"""Beginnings of variables by which a machine finds its package indexes."""
FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
UBUNTU = ("noble",)
UBUNTU_KEYRING = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")
"""Path that mmdebstrap reads; of Ubuntu's package ubuntu-keyring, which Debian does not have."""
READY_WITHIN_S = 30.0
INIT = Path(__file__).with_name("other_debian_init.sh")


class OtherDebian:
    """
    One root.

    Args:
        suite: As the mirror has it: trixie, sid, noble.
        folder: Where the root is made, and found again.
    """

    def __init__(self, suite: str, folder: Path) -> None:
        self.suite = suite
        self.root = folder / suite / "root"
        self._made = folder / suite / "made"
        self._parent: subprocess.Popen[bytes] | None = None
        self._pid = 0

    def make(self) -> None:
        """Make the root, unless an earlier run has."""
        if self._made.is_file():
            return
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.parent.mkdir(parents=True, exist_ok=True)
        # A mirror that is updated rarely has a list of sid that was valid for a week; its signature is checked anyway.
        dated = '--aptopt=Acquire::Check-Valid-Until "false"'
        packages = f"--include={','.join(PACKAGES)}"
        components = f"--components={'main,universe' if self.suite in UBUNTU else 'main'}"
        command = ["mmdebstrap", "--variant=minbase", dated, components, packages, self.suite, str(self.root)]
        subprocess.run(command, check=True, timeout=1200)
        for name in FILES:
            if Path(name).is_file():
                shutil.copy(Path(name).resolve(), self.root / name.lstrip("/"))
        self._made.touch()

    def start(self) -> None:
        """Start PID 1 of the root."""
        (self.root / "dev").mkdir(exist_ok=True)
        self._parent = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", str(INIT), str(self.root)], stdin=subprocess.DEVNULL
        )
        end = time.monotonic() + READY_WITHIN_S
        children = Path(f"/proc/{self._parent.pid}/task/{self._parent.pid}/children")
        while time.monotonic() < end and self._parent.poll() is None:
            self._pid = int((children.read_text().split() or ["0"])[0])
            if self._pid and Path(f"/proc/{self._pid}/root/run/ready").exists():
                return
            time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"the root of {self.suite} did not start within {READY_WITHIN_S:.0f} s")

    def run(self, command: str, *, timeout_s: float) -> "subprocess.CompletedProcess[str]":
        """Run a line of shell in the root, as root, in its home directory."""
        kept = [f"{name}={value}" for name, value in os.environ.items() if name.startswith(SETTINGS)]
        entered = ["nsenter", "-t", str(self._pid), "-m", "-p", "-r", "-w/", "--", "/usr/bin/env", "-i"]
        own = [f"PATH={PATH}", "HOME=/root", "HOLDFAST_PORT=5790", *kept]
        return subprocess.run(
            [*entered, *own, "/bin/bash", "-c", f"cd /root && {command}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def clone(self, repository: Path, *, commit: str) -> None:
        """Have the product in /root/holdfast, at a commit."""
        place = self.root / "root" / "holdfast"
        if not place.exists():
            subprocess.run(["git", "clone", "--quiet", str(repository), str(place)], check=True, timeout=300)
        for words in (("fetch", "--quiet", str(repository)), ("checkout", "--quiet", commit)):
            subprocess.run(["git", "-C", str(place), *words], check=True, timeout=300)

    def processes(self) -> Sequence[str]:
        """Commands of what runs in the root."""
        return self.run("ps -eo args=", timeout_s=30).stdout.splitlines()

    def stop(self) -> None:
        """End all that runs in the root."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
        if self._parent is not None:
            self._parent.wait(timeout=READY_WITHIN_S)
        self._pid, self._parent = 0, None
