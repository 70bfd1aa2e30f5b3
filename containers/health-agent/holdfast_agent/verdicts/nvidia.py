"""Messages of NVIDIA's driver and fabric manager about GPUs and switches: number, device, facts."""

import re
from typing import Optional, Union

LITERALS = ("Xid", "fallen off the bus", "The NVIDIA GPU ", "detected NVSwitch ", "uvm encountered global fatal error")

Facts = "dict[str, Union[str, int, float, bool]]"

_XID = re.compile(
    r"NVRM:\s*(?:\S+ )?Xid \((?:PCI:)?([0-9a-fA-F]+(?:[:.][0-9a-fA-F]+)+)([^)]*)\):?\s*(\d+)\b[,:]?\s*(.*)", re.DOTALL
)
_SXID = re.compile(
    r"nvidia-nvswitch(\d+):? SXid \((?:PCI:)?([0-9a-fA-F]+(?:[:.][0-9a-fA-F]+)+)\):?\s*(\d+)\b[,:]?\s*(.*)", re.DOTALL
)
_NAMED = re.compile(r"NVRM: Xid\b|NVRM:.*\bXid \(|SXid \(")
_LOST = re.compile(
    r"NVRM: (?:GPU|The NVIDIA GPU) (?:at )?(?:PCI:)?([0-9a-fA-F]+(?:[:.][0-9a-fA-F]+)+).*fallen off the bus", re.DOTALL
)
_LOST_BEGINS = re.compile(r"NVRM: The NVIDIA GPU ([0-9a-fA-F]+(?:[:.][0-9a-fA-F]+)+)\s*$")
_LOST_ENDS = re.compile(
    r"(?:NVRM: )?(?:(?:\(PCI ID|installed in|system has) ?.*)?fallen off the bus and is not responding"
)
_MANAGER = re.compile(
    r"(?:\[\w+\] )?(?:\[tid \d+\] )?detected NVSwitch (non-)?fatal error (\d+) on .*?pci bus id ([0-9a-fA-F:.]+)"
    r"(?:.*?port (\d+))?",
    re.IGNORECASE,
)
_UVM = re.compile(r"NVRM: .*uvm encountered global fatal error.*requiring os reboot")
_OWNER = re.compile(r"pid='?[^,']*'?,\s*(?:name='?[^,]*,\s*)?")
_PID = re.compile(r"pid='?(\d+)'?")
_NAME = re.compile(r"\bname='?([^,']+?)'?(?:,|$)")
_LINK = re.compile(r"\blink\s+(-?\d+)", re.IGNORECASE)
_NVLINK_5 = re.compile(
    r"(\w+)\s+(Fatal|Non-?fatal)\s+XC-?\d+\s+i-?\d+\s+Link\s+-?\d+\s*\((0x[0-9a-fA-F]+)", re.IGNORECASE
)
_FATALITY = re.compile(r"\b(non-?fatal|fatal)\b", re.IGNORECASE)
_ACTION = re.compile(r"\bto\s+(?:0x([0-9a-fA-F]+)|\(?([A-Z][\w ]+)\)?)")
_ACTIONS = (
    ("none", 0),
    ("gpu reset", 1),
    ("node reboot", 2),
    ("os reboot", 2),
    ("drain p2p", 3),
    ("drain and reset", 4),
)
_ROW = re.compile(r"\brow \((0x[0-9a-fA-F]+)\)")
_FAILED = re.compile(r"\b(?:fail\w*|error|full|unable|could not|cannot)\b", re.IGNORECASE)

NVLINK_5 = range(144, 151)


def is_named(text: str) -> bool:
    """True if a text mentions an Xid or SXid as the driver does, so that a failed parse is worth reporting."""
    return _NAMED.search(text) is not None


def xid(text: str) -> "Optional[tuple[str, int, dict[str, Union[str, int, float, bool]]]]":
    """Device, number and facts."""
    found = _XID.match(text)
    if found is None:
        return None
    code, output = int(found[3]), found[4]
    facts: dict[str, Union[str, int, float, bool]] = {}
    if pid := _PID.search(output):
        facts["pid"] = int(pid[1])
    if (name := _NAME.search(output)) and not name[1].startswith("<"):
        facts["name"] = name[1]
    if instance := found[2].strip():
        facts["instance"] = instance
    owner = _OWNER.match(output)
    text = output[owner.end() :] if owner else output
    if link := _LINK.search(text):
        facts["link"] = int(link[1])
    _read_text(code, text, facts)
    return found[1].lower(), code, facts


def _read_text(code: int, text: str, facts: "dict[str, Union[str, int, float, bool]]") -> None:
    if code in NVLINK_5:
        if decoded := _NVLINK_5.search(text):
            facts["unit"] = decoded[1]
            facts["sub_code"] = int(decoded[3], 16) >> 20 & 0x3F
        if fatality := _FATALITY.search(text):
            facts["fatal"] = fatality[1].lower() == "fatal"
    elif code in (63, 64):
        facts["failed"] = _FAILED.search(text) is not None
        if row := _ROW.search(text):
            facts["row"] = row[1].lower()
    elif code == 48:
        facts["threshold"] = "threshold" in text.lower()
    elif code == 71:
        facts["nvlink"] = "nvlink" in text.lower()
    elif code == 154 and (action := _action(text)) is not None:
        facts["action"] = action


def _action(text: str) -> Optional[int]:
    """Recovery action of an Xid 154, as in nvml.h."""
    found = _ACTION.search(text)
    if found is None:
        return None
    if found[1]:
        return int(found[1], 16)
    return next((number for words, number in _ACTIONS if found[2].lower().startswith(words)), None)


def sxid(text: str) -> "Optional[tuple[str, int, dict[str, Union[str, int, float, bool]]]]":
    """Device, number and facts; ``detail`` is set on the lines of severity and data after an error's first."""
    found = _SXID.match(text)
    if found is not None:
        output = found[4]
        facts: dict[str, Union[str, int, float, bool]] = {"switch": int(found[1])}
        if fatality := _FATALITY.match(output):
            facts["fatal"] = fatality[1].lower() == "fatal"
        elif output.startswith(("Severity", "Data")):
            facts["detail"] = True
        if link := _LINK.search(output):
            facts["link"] = int(link[1])
        return found[2].lower(), int(found[3]), facts
    if manager := _MANAGER.match(text):
        facts = {"fatal": manager[1] is None}
        if manager[4]:
            facts["link"] = int(manager[4])
        return manager[3].lower(), int(manager[2]), facts
    return None


def requires_reboot(text: str) -> bool:
    return _UVM.match(text) is not None


def lost_without_xid(text: str) -> Optional[str]:
    """Device of a line that reports a GPU off the bus, without an Xid."""
    found = _LOST.match(text)
    return found[1].lower() if found else None


def begins_a_loss(text: str) -> Optional[str]:
    """Device of the first of the three lines of older drivers."""
    found = _LOST_BEGINS.match(text)
    return found[1].lower() if found else None


def ends_a_loss(text: str) -> bool:
    return _LOST_ENDS.match(text) is not None


def same_device(address: str) -> str:
    """PCI address without function and leading zeros of the domain: the driver writes it in four ways."""
    parts = address.lower().rpartition(".")[0].split(":") if "." in address else address.lower().split(":")
    if len(parts) == 2:
        parts.insert(0, "0")
    if len(parts) != 3 or not all(part and all(digit in "0123456789abcdef" for digit in part) for part in parts):
        return address
    return f"{int(parts[0], 16):04x}:{parts[1].zfill(2)}:{parts[2].zfill(2)}"
