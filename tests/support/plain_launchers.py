"""Launchers of a small script that says nothing to them, with real processes; they are gone when the test ends."""

import os
import subprocess
import sys
from pathlib import Path

from killing import PYTHONPATH, QUICK

PLAIN = """
import os, signal, sys, time


def note(number, _frame):
    with open(os.path.join(out, "received"), "a") as file:
        file.write(f"{os.environ['RANK']} {signal.Signals(number).name}" + chr(10))
    if number == signal.SIGTERM:
        sys.exit(0)


out, kind = sys.argv[1:3]
with open(os.path.join(out, "started"), "a") as file:
    about = [os.environ[name] for name in ("RANK", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")]
    file.write(" ".join([*about, str(os.getpid())]) + chr(10))
if kind == "die-once" and os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    os.kill(os.getpid(), signal.SIGKILL)
if kind == "unknown-option":
    import argparse
    argparse.ArgumentParser().parse_args(["--learning-rat=0.1"])
if kind == "misspelled":
    batch_sise
if kind == "alone" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    raise RuntimeError("Connection closed by peer")
if kind == "die":
    sys.exit(3)
if kind == "catch":
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)[: 1 if os.environ["RANK"] == "1" else 3]:
        signal.signal(number, note)
    open(os.path.join(out, "catches" + os.environ["RANK"]), "w")
if kind in ("wait", "catch"):
    time.sleep(60)
os.write(1, f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}".encode() + bytes([10]))
"""


class Launchers:
    """Launchers of one test; all are gone when it ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = folder / "plain.py"
        self.script.write_text(PLAIN)
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *options: str, program: tuple[str, ...], before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        number = len(self._started)
        command = [*before, sys.executable, "-m", "holdfast_runtime.launcher", "--preload", "json"]
        command += ["--deadlines", QUICK, "--socket", str(self.folder / f"{number}.sock"), *options, *program]
        pipe = subprocess.PIPE
        environment = {**os.environ, "PYTHONPATH": PYTHONPATH, "HOLDFAST_LOG_LEVEL": "debug"}
        launcher = subprocess.Popen(
            command, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=True
        )
        self._started.append(launcher)
        return launcher

    def plain(self, kind: str, *options: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        """The script above, which says nothing to its launcher; ``before`` is a command that runs the launcher's."""
        return self.start(*options, program=(str(self.script), str(self.folder), kind), before=before)

    def started(self) -> list[list[str]]:
        """Rank, port, attempt and pid of every process that has run."""
        path = self.folder / "started"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def received(self) -> list[str]:
        """Rank and name of every signal that a handler of the script was called for."""
        path = self.folder / "received"
        return sorted(path.read_text().splitlines()) if path.exists() else []

    def close(self) -> None:
        for launcher in self._started:
            launcher.kill()
            launcher.communicate()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
