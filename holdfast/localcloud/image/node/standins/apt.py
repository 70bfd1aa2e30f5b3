"""apt, apt-get, apt-cache and equivs-build: packages of the node, and those whose absence changes nothing."""

from __future__ import annotations

import os
import re
import shutil
import sys

from .common import STATE, real, record, recorded, refuse

PACKAGES: dict[str, tuple[str, ...]] = {
    "apg": ("apg",),
    "ca-certificates": (),
    "curl": ("curl",),
    "equivs": (),
    "expect": ("expect",),
    "fuse-overlayfs": (),
    "gettext-base": ("envsubst",),
    "gnupg": (),
    "jq": ("jq",),
    "lsb-release": ("lsb_release",),
    "mariadb-server": ("mariadbd",),
    "nfs-common": (),
    "parallel": (),
    "python3-pip": (),
    "rsync": ("rsync",),
    "squashfs-tools": (),
    "squashfuse": (),
    "unzip": ("unzip",),
}
"""Packages of AWS's scripts, and the programs that a node must have for each to count as installed."""

DRIVER = "580.105.08"
"""Of the NVIDIA kernel module that modinfo shows (assumed: AWS's release notes change it with each image)."""


def main(argv: list[str]) -> int:
    rest = [
        word
        for word in argv
        if word not in ("-y", "--yes", "-q", "-qq", "--allow-downgrades", "--no-install-recommends")
    ]
    while "-o" in rest:
        at = rest.index("-o")
        del rest[at : at + 2]
    if rest == ["update"]:
        print("Hit:1 http://holdfast.invalid jammy InRelease\nReading package lists...")
        return 0
    if len(rest) > 1 and rest[0] == "install" and not any(word.startswith("-") for word in rest[1:]):
        return _install(rest[1:])
    return refuse("apt-get", argv, status=100)


def _install(names: list[str]) -> int:
    print("Reading package lists...\nBuilding dependency tree...")
    for name in names:
        if name.startswith(("./", "/")) and not os.path.isfile(name):
            sys.stderr.write(f"E: Unsupported file {name} given on commandline\n")
            return 100
        if not name.startswith(("./", "/")) and not _known(name.partition("=")[0]):
            sys.stderr.write(f"E: Unable to locate package {name}\n")
            return 100
    for name in names:
        package = os.path.basename(name).partition("_")[0] if "/" in name else name.partition("=")[0]
        if recorded("packages", package) or _has(package):
            print(f"{package} is already the newest version.")
        else:
            print(f"Setting up {package} (holdfast's stand-in) ...")
        record("packages", package)
        _effect(package)
    return 0


def _known(package: str) -> bool:
    return _has(package) or (package in PACKAGES and all(shutil.which(one) for one in PACKAGES[package]))


def _has(package: str) -> bool:
    return os.path.exists(f"/var/lib/dpkg/info/{package}.list") or os.path.exists(
        f"/var/lib/dpkg/info/{package}:amd64.list"
    )


def _effect(package: str) -> None:
    if package == "equivs" and not os.path.lexists("/usr/local/bin/equivs-build"):
        os.symlink("/usr/local/lib/holdfast/bin/equivs-build", "/usr/local/bin/equivs-build")
    if package == "enroot":
        os.makedirs("/etc/enroot", exist_ok=True)


def cache(argv: list[str]) -> int:
    """apt-cache for the driver's package; else the machine's own."""
    if len(argv) == 2 and argv[0] in ("show", "policy") and argv[1].startswith("libnvidia-compute-"):
        package, _, version = argv[1].partition("=")
        if package != f"libnvidia-compute-{DRIVER.partition('.')[0]}" or version not in ("", f"{DRIVER}-1ubuntu1"):
            sys.stderr.write(f"N: Unable to locate package {argv[1]}\nE: No packages found\n")
            return 100
        if argv[0] == "policy":
            print(f"{package}:\n  Installed: (none)\n  Candidate: {DRIVER}-1ubuntu1")
        else:
            print(f"Package: {package}\nVersion: {DRIVER}-1ubuntu1\nProvides: libcuda1, libcuda.so.1")
        return 0
    return real("/usr/bin/apt-cache", argv)


def equivs_build(argv: list[str]) -> int:
    if len(argv) != 1 or not os.path.isfile(argv[0]):
        return refuse("equivs-build", argv)
    with open(argv[0], encoding="utf-8") as file:
        fields = dict(re.findall(r"^(\w+): *(.*)$", file.read(), re.MULTILINE))
    name = f"{fields.get('Package', argv[0])}_{fields.get('Version', '1.0')}_all.deb"
    with open(name, "w", encoding="utf-8") as file:
        file.write(f"an empty package of holdfast's stand-in; records: {STATE}/packages\n")
    print(f"dpkg-deb: building package '{fields.get('Package', argv[0])}' in './{name}'.")
    return 0
