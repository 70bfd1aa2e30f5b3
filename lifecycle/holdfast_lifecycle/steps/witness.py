"""
The witness of training jobs runs: one more voter, without ranks, so that a job of two nodes may lose one.

It runs on the controller, where no job does, at a port that slurm.conf gives to all nodes. A failure is only reported:
jobs train without it. systemd restarts it when it exits or hangs (``WatchdogSec``, sd_notify(3)).
"""

import contextlib
import hashlib
import sys

from holdfast_lifecycle.model import Context, StepError
from holdfast_lifecycle.node import is_active, is_written, run_program, start, write_whole

UNIT = "holdfast-witness"
_FILE = f"/etc/systemd/system/{UNIT}.service"
_LIBRARY = "/opt/holdfast/lib"
_LEAST = (3, 10)
"""What holdfast_runtime is written for."""
_TEXT = """\
# Written by holdfast_lifecycle at node creation; changes are lost. Program: {content}
[Unit]
Description=A voter without ranks for training jobs
After=network.target
StartLimitIntervalSec=0
[Service]
Environment=PYTHONPATH={library}
ExecStart={python} -S -m holdfast_runtime.witness
Restart=always
RestartSec=1
WatchdogSec=10
MemoryMax=1G
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
CapabilityBoundingSet=CAP_NET_BIND_SERVICE CAP_SETUID CAP_SETGID
[Install]
WantedBy=multi-user.target
"""


def _text(context: Context) -> bytes:
    """The unit; its content changes with the program, which causes a restart."""
    content = hashlib.sha256()
    for package in ("membership", "control", "witness"):
        for source in sorted((context.bundle / "holdfast_runtime" / package).glob("*.py")):
            content.update(source.read_bytes())
    return _TEXT.format(content=content.hexdigest()[:16], library=_LIBRARY, python=sys.executable).encode()


def _why_not(context: Context) -> str:
    if sys.version_info < _LEAST:
        return f"{sys.executable} is Python {sys.version_info.major}.{sys.version_info.minor}, but 3.10 is required"
    if not (context.bundle / "holdfast_runtime" / "witness").is_dir():
        return "the bundle has no holdfast_runtime"
    return ""


def check(context: Context) -> bool:
    return bool(_why_not(context)) or (is_written(context.path(_FILE), _text(context)) and is_active(UNIT))


def apply(context: Context) -> None:
    changed = not is_written(context.path(_FILE), _text(context))
    with contextlib.suppress(StepError):  # verify says what there is
        if changed:
            write_whole(context.path(_FILE), _text(context))
            run_program("systemctl", "daemon-reload")
        again = changed and is_active(UNIT)
        start(UNIT)
        if again:
            run_program("systemctl", "restart", UNIT)


def verify(context: Context) -> str:
    without = "jobs on two nodes cannot survive the loss of one"
    why = _why_not(context)
    if not why and not is_active(UNIT):
        why = f"{UNIT} does not run; read 'journalctl -u {UNIT}'"
    return f"no witness: {without}: {why}" if why else f"{UNIT} runs"
