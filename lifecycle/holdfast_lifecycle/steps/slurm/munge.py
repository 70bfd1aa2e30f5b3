"""
Munge runs, by which the daemons of Slurm know each other.

HyperPod installs its key.
"""

from holdfast_lifecycle.model import Context, StepError
from holdfast_lifecycle.node import is_active, start

_KEY = "/etc/munge/munge.key"


def check(_: Context) -> bool:
    return is_active("munge")


def apply(context: Context) -> None:
    if not context.path(_KEY).is_file():
        raise StepError(
            expected=f"{_KEY} is there",
            seen="it is not",
            action="check in the cluster's events that HyperPod stored its munge key, and create the cluster again",
        )
    start("munge")


def verify(_: Context) -> str:
    if not is_active("munge"):
        raise StepError(
            expected="munge runs", seen="systemctl reports it inactive", action="read 'journalctl -u munge'"
        )
    return "munge runs"
