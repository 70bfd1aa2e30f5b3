"""State of a process in the kernel, from /proc."""

from pathlib import Path

DEVICES = ("/dev/nvidia", "/dev/neuron", "/dev/kfd")


def kernel_state(pid: int, *, proc: Path = Path("/proc")) -> str:
    try:
        state = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
        return f"state {state}, waits in {(proc / str(pid) / 'wchan').read_text() or '?'}"
    except OSError:
        return "it is gone"


def is_blocked(pid: int) -> bool:
    """Return True if the main thread is in uninterruptible sleep, as in a file system or a driver that is stuck."""
    return kernel_state(pid).startswith("state D")


def holds_device(pid: int, *, proc: Path = Path("/proc")) -> bool:
    """Return True if a process has an accelerator open, or if its files cannot be read."""
    try:
        return any(str(each.readlink()).startswith(DEVICES) for each in (proc / str(pid) / "fd").iterdir())
    except OSError:
        return True
