"""PCIe ports of GPUs: the kernel reports link errors by the port above the GPU."""

from pathlib import Path

DEVICES = Path("/sys/bus/pci/devices")
_NVIDIA = "0x10de"
_DISPLAY = "0x03"


def gpu_ports(devices: Path = DEVICES) -> "dict[str, str]":
    """PCI address of each port that leads to a single GPU -> that GPU; empty where unreadable."""
    above: dict[str, list[str]] = {}
    try:
        gpus = [path for path in sorted(devices.iterdir()) if _is_gpu(path)]
    except OSError:
        return {}
    for gpu in gpus:
        for port in gpu.resolve().parents:
            if port.name.count(":") == 2:
                above.setdefault(port.name, []).append(gpu.name)
    return {port: found[0] for port, found in above.items() if len(found) == 1}


def _is_gpu(path: Path) -> bool:
    try:
        vendor, kind = (path / "vendor").read_text().strip(), (path / "class").read_text().strip()
    except OSError:
        return False
    return vendor == _NVIDIA and kind.startswith(_DISPLAY)
