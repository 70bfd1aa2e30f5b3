"""modprobe, modinfo, lctl, lnetctl, fi_info: a node shares the machine's kernel, which has neither Lustre nor EFA."""

from __future__ import annotations

import os
import sys

from .apt import DRIVER
from .common import refuse

MODULES = {"lnet": "2.15.6", "lustre": "2.15.6", "nvidia": DRIVER}
"""Modules of HyperPod's images and what modinfo gives as their version (assumed)."""
_PLACE = "/run/holdfast/modules"


def modprobe(argv: list[str]) -> int:
    names = [word for word in argv if not word.startswith("-")]
    if set(argv) - set(names) - {"-q", "-v", "-r"} or not names:
        return refuse("modprobe", argv)
    for name in names:
        if name not in ("lnet", "lustre"):
            sys.stderr.write(
                f"modprobe: FATAL: Module {name} not found in directory /lib/modules/{os.uname().release}\n"
            )
            return 1
        os.makedirs(_PLACE, exist_ok=True)
        if "-r" in argv:
            if os.path.exists(f"{_PLACE}/{name}"):
                os.unlink(f"{_PLACE}/{name}")
        else:
            with open(f"{_PLACE}/{name}", "w", encoding="utf-8"):
                pass
    return 0


def modinfo(argv: list[str]) -> int:
    field = argv[1] if len(argv) == 3 and argv[0] == "-F" else ""
    name = argv[-1] if argv else ""
    if field not in ("", "version") or (not field and len(argv) != 1):
        return refuse("modinfo", argv)
    if name not in MODULES:
        sys.stderr.write(f"modinfo: ERROR: Module {name} not found.\n")
        return 1
    print(MODULES[name] if field else f"version:        {MODULES[name]}\ndescription:    holdfast's stand-in")
    return 0


def lctl(argv: list[str]) -> int:
    loaded = os.path.exists(f"{_PLACE}/lnet") or os.path.exists(f"{_PLACE}/lustre")
    if argv in (["network", "up"], ["net", "up"]):
        if not loaded:
            sys.stderr.write("LNET configure error 2: No such file or directory\n")
            return 2
        print("LNET configured")
        return 0
    if argv == ["list_nids"]:
        if not loaded:
            sys.stderr.write("IOC_LIBCFS_GET_NI error 22: Invalid argument\n")
            return 22
        print(f"{_address()}@tcp")
        return 0
    return refuse("lctl", argv)


def _address() -> str:
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 1))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def lnetctl(argv: list[str]) -> int:
    if argv[:2] == ["net", "show"] and "efa" in argv:
        sys.stderr.write('show:\n    - net:\n          errno: -2\n          descr: "cannot get networks"\n')
        return 2
    return refuse("lnetctl", argv)


def fi_info(argv: list[str]) -> int:
    """No EFA provider; fi_info(1) exits with fi_getinfo's code, -FI_ENODATA."""
    if argv not in (["-p", "efa"], ["-p", "efa", "-t", "FI_EP_RDM"]):
        return refuse("fi_info", argv)
    sys.stderr.write("fi_getinfo: -61 (No data available)\n")
    return 61
