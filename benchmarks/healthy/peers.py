"""
What other agents decide about an Xid or SXid, from what is published about them.

HyperPod's health-monitoring agent: one user's test of 1.0.1481 on g6e (2026-05-21). EKS node monitoring agent: its
fatal conditions, snapshot 51af5494. leptonai/gpud: first repair action of its catalogue, snapshot 4a8de33a. Each is
given the benefit of the doubt: a line is read as the driver means it, only the kernel's lines are read, gpud's decoding
of NVLink 5 acts on Fatal only, and a node that is being repaired is not repaired again for ten minutes.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)[^)]*\): (\d+),?(.*)")
_SXID = re.compile(r"SXid \(PCI:[0-9a-fA-F:.]+\): (\d+), (Fatal|Non-fatal)")
_AGAIN_AFTER_S = 600.0
REPAIRS = ("reset-gpu", "reboot", "replace")

_EKS_FATAL = {46, 48, 54, 62, 63, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 142, 143, 151, 155, 156, 158}
_GPUD_REBOOT = {
    *(32, 38, 44, 46, 48, 62, 63, 64, 68, 69, 74, 79, 94, 95),
    *(110, 119, 120, 121, 123, 140, 151, 155, 156, 158),
}


@dataclass(frozen=True)
class Peer:
    """An agent's table: remedy of an Xid with its text, and of a fatal SXid."""

    name: str
    xid: Callable[[int, str], str]
    fatal_sxid: str


def _hyperpod(code: int, text: str) -> str:
    del text
    return "restart-process" if code == 94 else "replace" if code in (64, 74, 79) else "reboot"


def _eks(code: int, text: str) -> str:
    del text
    return "reboot" if code in _EKS_FATAL else "none"


def _gpud(code: int, text: str) -> str:
    if 144 <= code <= 150:
        return "reboot" if re.search(r"\bFatal\b", text) else "none"
    return "replace" if code == 143 else "reboot" if code in _GPUD_REBOOT else "none"


PEERS = (
    Peer("HyperPod's agent (HMA)", _hyperpod, "replace"),
    Peer("EKS node monitoring agent", _eks, "none"),
    Peer("leptonai/gpud", _gpud, "reboot"),
)


def repairs_by(peer: Peer, kernel: Iterable[tuple[float, str]]) -> list[tuple[float, str, str]]:
    repairs: list[tuple[float, str, str]] = []
    for second, text in kernel:
        if found := _XID.search(text):
            remedy = peer.xid(int(found[2]), found[3])
        elif found := _SXID.search(text):
            remedy = peer.fatal_sxid if found[2] == "Fatal" else "none"
        else:
            continue
        if remedy in REPAIRS and (not repairs or second - repairs[-1][0] > _AGAIN_AFTER_S):
            repairs.append((second, remedy, text))
    return repairs
