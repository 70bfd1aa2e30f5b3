"""Kernel messages of NVIDIA's driver and of file systems. Pure. Sources: docs/do/planting.md."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.localcloud.planting.faults import BURST

WITHOUT_GPUS = "0000:53:00.0"
"""The address in a line for a node that has no GPUs: a kernel may say anything."""

# After the number, with {pid} and {name} of a process and {gpu}, the GPU's number.
_APPLICATION = "pid={pid}, name={name}, "
_TEXTS = {
    8: _APPLICATION + "Channel 00000008",
    13: _APPLICATION + "Graphics SM Warp Exception on (GPC 2, TPC 3, SM 1): Out Of Range Address",
    31: _APPLICATION
    + "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_2 faulted @ 0x7f1c_4a000000. "
    "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
    43: _APPLICATION + "Ch 00000008",
    45: _APPLICATION + "Ch {channel:08x}",
    48: "pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected on GPU in the "
    "framebuffer at partition 6, subpartition 0.",
    62: "pid='<unknown>', name=<unknown>, 0000(0000) 00000000 00000000",
    63: "pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping, reset gpu to activate.",
    64: "pid='<unknown>', name=<unknown>, Row Remapper: Failed to remap row, reset gpu to retry.",
    74: "pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 6"
    "(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    79: "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    92: "pid='<unknown>', name=<unknown>, High single-bit ECC error rate",
    94: _APPLICATION + "Contained: SM (0x1). RST: No, D-RST: No",
    95: _APPLICATION + "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    109: _APPLICATION + "Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x4c00a",
    110: "pid='<unknown>', name=<unknown>, Security fault",
    119: "pid={pid}, name={name}, Timeout after 6s of waiting for RPC response from GPU{gpu} GSP! Expected function "
    "103 (GSP_RM_ALLOC) (0x2081 0x4).",
    120: "pid='<unknown>', name=<unknown>, GSP task exception: 0xdead @ 0x1234",
    121: "pid='<unknown>', name=<unknown>, C2C Link corrected error threshold exceeded",
    136: "pid='<unknown>', name=<unknown>, NVLink: Link training failed on link 6",
    140: "pid='<unknown>', name=<unknown>, Unrecovered ECC error in DRAM",
    143: "pid='<unknown>', name=<unknown>, GPU initialization failure",
    144: "SAW_MVB Fatal XC0 i0 Link 08 (0x00000007 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)",
    149: "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)",
    154: "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
}  # fmt: skip
_ANY = "pid='<unknown>', name=<unknown>, Ch 00000008"


@dataclass(frozen=True, kw_only=True)
class GpuProcess:
    pid: int
    name: str


def xid(code: int, *, address: str, gpu: int, process: GpuProcess | None, channel: int = 8) -> str:
    """Return the driver's message of an Xid: its address has no function number."""
    named = {"pid": process.pid if process else "'<unknown>'", "name": process.name if process else "<unknown>"}
    text = _TEXTS.get(code, _ANY).format(**named, gpu=gpu, channel=channel)
    return f"NVRM: Xid (PCI:{address.rpartition('.')[0]}): {code}, {text}"


def clean_up(addresses: Sequence[str], *, process: GpuProcess | None) -> list[str]:
    """Return messages for all channels of an ended job, GPU by GPU."""
    known = list(addresses) or [WITHOUT_GPUS]
    each = -(-BURST // len(known))
    lines = [
        xid(45, address=address, gpu=gpu, process=process, channel=8 + number)
        for gpu, address in enumerate(known)
        for number in range(each)
    ]
    return lines[:BURST]


def off_the_bus(address: str) -> str:
    """Return the message of a driver that cannot reach the GPU: without Xid."""
    return f"NVRM: GPU {address}: GPU has fallen off the bus."


def disk_became_read_only() -> list[str]:
    return [
        "EXT4-fs error (device nvme0n1p1): ext4_journal_check_start:84: comm kworker/u384:2: Detected aborted journal",
        "EXT4-fs (nvme0n1p1): Remounting filesystem read-only",
    ]
