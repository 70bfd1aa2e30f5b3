"""
Limits of a node's root towards the machine. Data only; applied by ``boot`` and ``entering``.

A node has no user namespace. Removed is what reaches through namespaces: devices, modules, the clock, kernel settings,
files by handle. CAP_SYS_ADMIN stays, for mounts and containers: root of a node is trusted, its users are not.
"""

KEPT = {
    "chown": 0, "dac_override": 1, "fowner": 3, "fsetid": 4, "kill": 5, "setgid": 6, "setuid": 7, "setpcap": 8,
    "net_bind_service": 10, "net_admin": 12, "net_raw": 13, "ipc_lock": 14, "ipc_owner": 15, "sys_chroot": 18,
    "sys_ptrace": 19, "sys_admin": 21, "sys_nice": 23, "sys_resource": 24, "audit_write": 29, "audit_control": 30,
    "setfcap": 31,
}  # fmt: skip
"""
Capabilities, with their numbers in linux/capability.h. Not there: mknod, dac_read_search (open_by_handle_at),
sys_module, sys_rawio, sys_boot, sys_time, syslog, bpf, perfmon and the rest. audit_control is for pam_loginuid; the
kernel takes nothing else of it from a PID namespace.
"""

FOR_CONTAINERS = {"mknod": 27}
"""
Also on a node that runs containers: a runtime makes the device nodes of each. The node's devices cgroup limits which
of them open, whatever a privileged container may do.
"""

DENIED_DEVICES = ("b *:* rw", "c 1:1 rw", "c 1:2 rw", "c 1:4 rw", "c 1:11 rw")
"""For a devices cgroup: the machine's disks, its memory, its ports and its kernel log."""

SETTINGS = "/proc/sys"
READ_ONLY = (SETTINGS, "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi")
MASKED = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/kallsyms", "/proc/kmsg")
"""One for the whole machine; container engines have such lists too."""
