"""Reader of /sys/class/infiniband; run in a child process, since drivers answer each read."""

import os
from collections.abc import Callable
from typing import Any

from holdfast_agent.kernel_files import read_bytes

ROOT = "/sys/class/infiniband"
WATCHED = frozenset(
    (
        "link_downed",
        "retrans_bytes",
        "retrans_pkts",
        "retrans_timeout_events",
        "impaired_remote_conn_events",
        "unresponsive_remote_events",
        "rx_drops",
        "rx_bytes",
        "tx_bytes",
        "rdma_read_wr_err",
        "rdma_write_wr_err",
    )
)
_FOLDERS = ("hw_counters", "counters")


def read_tree(question: Any, phase: Callable[[str], None]) -> "dict[str, Any]":
    """For ``{"root": folder}``, each device with its kind and ports: state, rate, judged counters."""
    root = question["root"]
    devices: dict[str, Any] = {}
    for name in sorted(_listed(root)):
        phase(name)
        folder = f"{root}/{name}"
        ports = {port: _port(f"{folder}/ports/{port}") for port in sorted(_listed(f"{folder}/ports"))}
        if ports:
            devices[name] = {"kind": _kind(folder), "ports": ports}
    return devices


def _kind(folder: str) -> str:
    """Devices of one kind are compared; EFA has vendor 0x1d0f and a device id that begins with 0xefa."""
    vendor, device = _read(f"{folder}/device/vendor"), _read(f"{folder}/device/device")
    if vendor == "0x1d0f" and device.startswith("0xefa"):
        return f"efa {device}"
    return " ".join(part for part in (vendor, device, _read(f"{folder}/hca_type"), _read(f"{folder}/board_id")) if part)


def _port(folder: str) -> "dict[str, Any]":
    counters = {}
    for place in _FOLDERS:
        for name in _listed(f"{folder}/{place}"):
            if name in WATCHED and (text := _read(f"{folder}/{place}/{name}")).isdigit():
                counters[name] = int(text)
    return {
        "state": _word(_read(f"{folder}/state")),
        "physical": _word(_read(f"{folder}/phys_state")),
        "rate": _read(f"{folder}/rate"),
        "layer": _read(f"{folder}/link_layer"),
        "counters": counters,
    }


def _word(text: str) -> str:
    return text.rpartition(": ")[2]


def _listed(folder: str) -> "list[str]":
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are wanted, and there are hundreds
    except OSError:
        return []


def _read(path: str) -> str:
    return (read_bytes(path, most=256) or b"").decode("ascii", "replace").strip()
