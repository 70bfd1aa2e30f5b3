"""
``systemctl`` and ``journalctl`` of a node: services from unit files, without systemd as PID 1.

One small supervisor process per service; state below /run/holdfast/units, output below /var/log/holdfast/units. Follows
systemd 249 of Ubuntu 22.04: systemctl(1), systemd.unit(5), systemd.service(5), systemd.exec(5), systemd.kill(5).
Differences: unit files are read on use, so only /etc/fstab is reloaded; an automount mounts at once; sockets, timers
and paths are not supported; settings that need seccomp or a cgroup have no effect. Standard library only, imported
sparingly for the start time.

    units     unit files: parsed, found below a root, their values
    state     records                     what runs
    running   spawn  confine  detach  children  supervisor
    deciding  manager  restart  boot
    output    options  verbs  show  enable  journal
"""

from .boot import main as start_enabled
from .journal import main as journalctl
from .verbs import main as systemctl

__all__ = ["boot", "confine", "enable", "journalctl", "manager", "restart", "start_enabled", "systemctl"]
