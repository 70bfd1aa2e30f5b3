"""
AMI-based configuration of one node, in groups without ``OnCreate``.

Source: "Node lifecycle configuration options", SageMaker developer guide: Slurm's daemons, ubuntu's home on the shared
file system, ssh between nodes, accounting on the controller.
"""

import subprocess
import threading

from holdfast.localcloud.hyperpod.slurm import COMMAND_TIMEOUT_S, SlurmError, last_words
from holdfast.localcloud.nodes import Node

_KEY_TYPE = "ed25519"  # AWS does not say which; this one takes no time

# As ubuntu and on the node: what a user has put in the way, such as a link, leads no further than for that user.
_MAKE_HOME = """set -eu
home=$1 kind=$2
[ ! -s "$home/.ssh/id_$kind" ] || exit 0
umask 022
[ -d "$home" ] || cp -R /etc/skel "$home"
[ -d "$home/.ssh" ] || mkdir -m 700 "$home/.ssh"
ssh-keygen -q -t "$kind" -N "" -C ubuntu -f "$home/.ssh/id_$kind"
cat "$home/.ssh/id_$kind.pub" >> "$home/.ssh/authorized_keys"
chmod 600 "$home/.ssh/authorized_keys"
"""

_keys = threading.Lock()


def shared_home(node: Node, *, mount_path: str) -> str:
    """Create ubuntu's home on a shared file system; return its path. Raise SlurmError if not usable."""
    home = f"{mount_path.rstrip('/')}/ubuntu"
    command = ["/bin/sh", "-c", _MAKE_HOME, "home", home, _KEY_TYPE]
    with _keys:
        try:
            done = node.run(command, user="ubuntu", timeout_s=COMMAND_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise SlurmError(f"making {home} timed out after {COMMAND_TIMEOUT_S:g} s") from None
    if done.returncode:
        raise SlurmError(f"{home} could not be made: {last_words(done)}")
    return home


def move_home(node: Node, *, home: str) -> None:
    """Make ``home`` the home of ubuntu on this node."""
    lines = node.read_file("/etc/passwd").decode().splitlines()
    fields = [line.split(":") for line in lines]
    moved = [[*one[:5], home, *one[6:]] if one[0] == "ubuntu" and len(one) == 7 else one for one in fields]
    node.write_file("/etc/passwd", "".join(":".join(one) + "\n" for one in moved).encode())
