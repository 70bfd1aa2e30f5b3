"""
The ``systemctl`` and ``journalctl`` of a node: services from real unit files, without systemd as PID 1.

It reads the units that scripts and packages install, starts services under one small supervisor process each, keeps
their state below /run/holdfast/units and their output below /var/log/holdfast/units. What it does and says follows
systemd 249, that of Ubuntu 22.04: systemctl(1), systemd.unit(5), systemd.service(5), systemd.exec(5),
systemd.kill(5). What differs: unit files are read when they are used, so there is nothing to reload but /etc/fstab;
an automount mounts at once; sockets, timers and paths are not known; what needs seccomp or a cgroup acts on nothing.

It runs on the node's own Python and imports the standard library alone, sparingly: starting takes most of its time.

    units     unit files: parsed, found below a root, their values read
    state     records                     what runs
    running   spawn  confine  detach  children  supervisor
    deciding  manager  restart  boot
    telling   options  verbs  show  enable  journal
"""

from .boot import main as start_enabled
from .journal import main as journalctl
from .verbs import main as systemctl

__all__ = ["boot", "confine", "enable", "journalctl", "manager", "restart", "start_enabled", "systemctl"]
