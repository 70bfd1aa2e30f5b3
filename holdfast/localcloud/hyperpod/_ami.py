"""
AMI-based configuration of one node: what HyperPod does where a group has no ``OnCreate`` script.

The list is AWS's ("Node lifecycle configuration options", SageMaker developer guide): Slurm's daemons, ubuntu's home
on the shared file system, ssh between nodes, accounting on the controller. What of it is a file of every node alike is
in the image; accounting is ``_accounting``'s.
"""

import os
import shutil
import subprocess
import threading
from pathlib import Path

from holdfast.localcloud.hyperpod._daemons import COMMAND_TIMEOUT_S
from holdfast.localcloud.nodes import UBUNTU_UID, Node

_KEY_TYPE = "ed25519"  # AWS does not say which; this one takes no time

_keys = threading.Lock()


def shared_home(*, directory: Path, mount_path: str) -> str:
    """
    ubuntu's home on a shared file system, with its key pair, made by whoever comes first.

    Args:
        directory: The file system, as this machine sees it.
        mount_path: Where the nodes have it.

    Returns:
        The path on the nodes.
    """
    home = directory / "ubuntu"
    with _keys:
        if not home.is_dir():
            shutil.copytree("/etc/skel", home)
            _give(home)
        ssh = home / ".ssh"
        if not (ssh / f"id_{_KEY_TYPE}").exists():
            ssh.mkdir(mode=0o700, exist_ok=True)
            command = [
                "ssh-keygen",
                "-q",
                "-t",
                _KEY_TYPE,
                "-N",
                "",
                "-C",
                "ubuntu",
                "-f",
                str(ssh / f"id_{_KEY_TYPE}"),
            ]
            subprocess.run(command, check=True, timeout=COMMAND_TIMEOUT_S, stdin=subprocess.DEVNULL)
            authorized = ssh / "authorized_keys"
            with authorized.open("a") as file:
                file.write((ssh / f"id_{_KEY_TYPE}.pub").read_text())
            authorized.chmod(0o600)
            _give(ssh)
    return f"{mount_path.rstrip('/')}/ubuntu"


def _give(directory: Path) -> None:
    for path in (directory, *directory.rglob("*")):
        os.chown(path, UBUNTU_UID, UBUNTU_UID, follow_symlinks=False)


def move_home(node: Node, *, home: str) -> None:
    """Make ``home`` the home of ubuntu on this node."""
    lines = node.read_file("/etc/passwd").decode().splitlines()
    fields = [line.split(":") for line in lines]
    moved = [[*one[:5], home, *one[6:]] if one[0] == "ubuntu" and len(one) == 7 else one for one in fields]
    node.write_file("/etc/passwd", "".join(":".join(one) + "\n" for one in moved).encode())
