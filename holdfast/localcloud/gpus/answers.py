"""Text that the library answers from. Pure. Keys: top of ``nvml.c``."""

import re
from collections.abc import Mapping

from holdfast.catalog import InstanceType

ANSWERS = "/run/holdfast/gpus"
"""On a node; for root to write."""

# As `lspci` shows them on these types; elsewhere the last devices before NVMe, as on G instances.
_ON_P4 = ("10:1c", "10:1d", "20:1c", "20:1d", "90:1c", "90:1d", "a0:1c", "a0:1d")
_ON_P5 = ("53:00", "64:00", "75:00", "86:00", "97:00", "a8:00", "b9:00", "ca:00")
_MEMORY_MIB = {"A100": 40960, "A10G": 23028, "H100": 81559, "H200": 143771, "L4": 23034, "L40S": 46068, "T4": 15360}
_NVLINKS = {"ml.p4": 12, "ml.p5": 18, "ml.p6": 18}
_NVIDIA = re.compile(r"(GB|[ABHLTV])\d+\w*|RTX ")
_PLANTED = "# planted: "


def healthy(kind: InstanceType) -> str:
    if not kind.accelerators or not _NVIDIA.match(kind.accelerator):
        return ""
    lines = [
        f"count={kind.accelerators}",
        f"name=NVIDIA {kind.accelerator}",
        f"memory_mib={_MEMORY_MIB.get(kind.accelerator, 81559)}",
        f"links={next((links for prefix, links in _NVLINKS.items() if kind.name.startswith(prefix)), 0)}",
    ]
    lines += [f"gpu{index}.pci={address}" for index, address in enumerate(_places(kind))]
    return "".join(f"{line}\n" for line in lines)


def _places(kind: InstanceType) -> list[str]:
    known: tuple[str, ...] = _ON_P4 if kind.name.startswith("ml.p4") else _ON_P5
    if kind.accelerators != len(known):
        known = tuple(f"00:{0x1F - kind.accelerators + index:02x}" for index in range(kind.accelerators))
    return [f"0000:{place}.0" for place in known]


def addresses(answers: str) -> tuple[str, ...]:
    """Return the PCI addresses of the GPUs, in order of their numbers."""
    found = re.findall(r"^gpu(\d+)\.pci=(\S+)$", answers, re.MULTILINE)
    return tuple(address for _, address in sorted(found, key=lambda pair: int(pair[0])))


def changed(answers: str, *, name: str, lines: Mapping[str, str]) -> str:
    """Return the text with ``lines`` as the fault ``name``. Of several faults with one answer the last one counts."""
    mark = f"{_PLANTED}{name}"
    parts = re.split(rf"^(?={_PLANTED})", answers, flags=re.MULTILINE)
    kept = "".join(part for part in parts if part.partition("\n")[0] != mark)
    return kept + (f"{mark}\n" + "".join(f"{key}={value}\n" for key, value in lines.items()) if lines else "")
