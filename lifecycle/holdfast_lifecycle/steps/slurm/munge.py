"""
Munge runs, by which the daemons of Slurm know each other.

HyperPod puts its key on the nodes; we start it.
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
            action="see in the cluster's events whether HyperPod stored its munge key, and make the cluster anew",
        )
    start("munge")


def verify(_: Context) -> str:
    if not is_active("munge"):
        raise StepError(
            expected="munge runs", seen="systemctl says that it does not", action="read 'journalctl -u munge'"
        )
    return "munge runs"
