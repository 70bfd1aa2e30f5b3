"""Recipe of the binaries, as data; its hash names their folder, so all that changes a binary belongs here."""

import hashlib
import json
from pathlib import Path
from typing import Any

EDITION = 1
"""Raised when a step does something else with the same data."""

SUITE = "bookworm"
VERSION = "1.20.2"
"""Of Kubernetes; Debian calls it 1.20.5+really1.20.2 (packages.debian.org/source/bookworm/kubernetes, 2026-11-21)."""

HYPERKUBE = "hyperkube"
STAND_INS = "holdfast-stand-ins"
_HERE = Path(__file__).parent
FOLDERS = {HYPERKUBE: _HERE / "program", STAND_INS: _HERE.parent / "stand_ins" / "program"}
"""Program and the folder of its Go files; a folder without any is left out."""

SOURCE_PACKAGE = "kubernetes"
TOOLS = ("golang-1.19-go", "golang-1.19-src", "golang-github-modern-go-reflect2-dev")
GO_ROOT = "usr/lib/go-1.19"
VENDORED = {"github.com/modern-go/reflect2": "usr/share/gocode/src/github.com/modern-go/reflect2"}
"""Vendored package and what of Debian's takes its place: the reflect2 of 2018 crashes what Go 1.18 or newer builds."""

TAGS = ("providerless", "dockerless")
"""Cloud providers and Docker are left out: a third of the code."""
STAMPED = ("component-base/version", "client-go/pkg/version")
"""Packages below vendor/k8s.io that get the version at link time."""
UNDESCRIBED = ("code-generator", "sample-", "/apis/example", "/testapigroup", "/generated/openapi")
"""Folders without OpenAPI definitions, which the source package lacks and the build generates."""

PROGRAMS = {
    "etcd": ("etcd-server", "usr/bin/etcd"),
    "containerd": ("containerd", "usr/bin/containerd"),
    "containerd-shim-runc-v2": ("containerd", "usr/bin/containerd-shim-runc-v2"),
    "ctr": ("containerd", "usr/bin/ctr"),
    "runc": ("runc", "usr/sbin/runc"),
    "cni/bridge": ("containernetworking-plugins", "usr/lib/cni/bridge"),
    "cni/host-local": ("containernetworking-plugins", "usr/lib/cni/host-local"),
    "cni/loopback": ("containernetworking-plugins", "usr/lib/cni/loopback"),
    "cni/portmap": ("containernetworking-plugins", "usr/lib/cni/portmap"),
}
"""Path in a folder of binaries -> Debian package and path in it."""


def go_files(program: str) -> list[Path]:
    return sorted(path for path in FOLDERS[program].glob("*.go") if not path.name.endswith("_test.go"))


def compiled() -> dict[str, str]:
    return {program: _hash(_followed_from(program)) for program in FOLDERS if go_files(program)}


def recipe_key() -> str:
    """Return 16 hexadecimal digits of the recipe, the name of its folder."""
    return _hash({"compiled": compiled(), "programs": PROGRAMS, "suite": SUITE})[:16]


def _followed_from(program: str) -> dict[str, Any]:
    return {
        "edition": EDITION,
        "suite": SUITE,
        "source": [SOURCE_PACKAGE, VERSION],
        "tools": TOOLS,
        "vendored": VENDORED,
        "tags": TAGS,
        "stamped": STAMPED,
        "undescribed": UNDESCRIBED if program == HYPERKUBE else (),
        "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in go_files(program)},
    }


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
