"""Checks of this machine before nodes are made."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import boot

_PACKAGES = {"ip": "iproute2", "nsenter": "util-linux", "setpriv": "util-linux"}

# In a process and mount namespace of its own, which takes every trace with it.
_PROBE = """
import sys; sys.path.insert(0, sys.argv[1])
import boot, os
boot.unshare(boot.CLONE_NEWNS | boot.CLONE_NEWUTS | boot.CLONE_NEWIPC | boot.CLONE_NEWNET | boot.CLONE_NEWPID)
boot.mount(source=None, target="/", flags=boot.MS_REC | boot.MS_PRIVATE)
boot.mount(source="probe", target="/tmp", kind="tmpfs")
for name in ("upper", "work", "root"):
    os.mkdir("/tmp/" + name)
options = boot.overlay_options(lowers=["/"], upper="/tmp/upper", work="/tmp/work")
boot.mount(source="overlay", target="/tmp/root", kind="overlay", data=options)
os.setxattr("/tmp/upper", "trusted.overlay.opaque", b"y")
os.mknod("/tmp/upper/whiteout", 0o020000, 0)
"""


def check_host() -> list[str]:
    if sys.platform != "linux":
        return [f"nodes are Linux namespaces and this is {sys.platform}; use a Linux machine or virtual machine"]
    if os.geteuid() != 0:
        return ["namespaces and mounts need root; run as root or with sudo"]
    path = os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin:/bin"
    problems = [
        f"the program {name} is missing; install the package {package}"
        for name, package in _PACKAGES.items()
        if shutil.which(name, path=path) is None
    ]
    argv = [sys.executable, "-I", "-S", "-c", _PROBE, str(Path(boot.__file__).parent)]
    probe = subprocess.run(argv, capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        reason = (probe.stderr.strip().splitlines() or ["no reason given"])[-1]
        problems.append(
            f"namespaces or overlay mounts are not permitted here ({reason}); "
            "use a machine or virtual machine, or a container with --privileged"
        )
    return problems
