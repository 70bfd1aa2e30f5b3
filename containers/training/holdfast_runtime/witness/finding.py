"""Address of the witness: from a flag, or beside Slurm's controller in slurm.conf."""

import re
from collections.abc import Mapping
from pathlib import Path

PORT = 585
"""Below 1024, so that on the controller no user's program can be there in its place. Not assigned by IANA."""
MOST_NODES = 32
"""With more launchers than this one lost launcher more does not matter."""
FILES = (
    "/run/slurm/conf/slurm.conf",
    "/var/spool/slurmd/conf-cache/slurm.conf",
    "/opt/slurm/etc/slurm.conf",
    "/etc/slurm/slurm.conf",
)
"""Where slurmd keeps what its controller sent it, and where HyperPod's AMI and distributions have it."""
NONE = "none"
Address = tuple[str, int]


class WitnessError(ValueError):
    """The address of a witness that cannot be one, and what is allowed."""


def is_of_use(given: str | None, *, nodes: int) -> bool:
    return given != NONE and nodes % 2 == 0 and nodes <= MOST_NODES


def find_witness(
    given: str | None, *, nodes: int, environment: Mapping[str, str], root: Path = Path("/")
) -> Address | None:
    """
    Host and port, from the flag or under Slurm from slurm.conf, which is read anew each time: a controller that was
    replaced may be at another address. None where there is no use for one, or nothing says where it would be.

    Raises:
        WitnessError: the flag is no address.
    """
    if not is_of_use(given, nodes=nodes):
        return None
    if given is not None:
        host, _, number = given.rpartition(":")
        if not host or not number.isdigit() or not 0 < int(number) < 65536:
            raise WitnessError(f"--witness is {given!r}; allowed: HOST:PORT, or {NONE}")
        return host.strip("[]"), int(number)
    if "SLURM_JOB_ID" not in environment:
        return None
    for name in (environment.get("SLURM_CONF", ""), *FILES):
        path = root / name.lstrip("/")
        try:
            text = path.read_text(errors="replace") if name else ""
        except OSError:
            continue
        host = controller_in(text)
        if host:
            return host, PORT
    return None


def controller_in(text: str) -> str:
    """
    The address of the first controller in a slurm.conf; empty where it names none.

    slurm.conf(5): "SlurmctldHost ... may optionally be followed by the address in parentheses", case does not matter,
    and the older names are ControlMachine and ControlAddr.
    """
    for name in ("SlurmctldHost", "ControlAddr", "ControlMachine"):
        found = re.search(
            rf"^[ \t]*{name}[ \t]*=[ \t]*([^\s#(]+)(?:\(([^)\s]+)\))?", text, re.IGNORECASE | re.MULTILINE
        )
        if found:
            return found[2] or found[1]
    return ""
