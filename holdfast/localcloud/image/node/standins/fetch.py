"""curl, wget and git for the addresses that AWS's scripts fetch; else the machine's own program."""

from __future__ import annotations

import os
import re
import sys

from .common import real

ENROOT = re.compile(r"https://github\.com/NVIDIA/enroot/releases/download/v[0-9.]+/(enroot(?:\+caps)?_[^/]+\.deb)")
GO = re.compile(r"https://go\.dev/dl/go[0-9.]+\.linux-(?:amd64|arm64)\.tar\.gz")
PYXIS = "https://github.com/NVIDIA/pyxis.git"
EXPORTER = "https://github.com/SckyzO/slurm_exporter.git"

_PYXIS_MAKEFILE = """\
all:
\t@echo "nothing to compile: holdfast's stand-in for pyxis"
install:
\tinstall -d /usr/local/share/pyxis
\techo "# holdfast's stand-in: no plugin" > /usr/local/share/pyxis/pyxis.conf
"""
_EXPORTER_MAKEFILE = """\
build:
\tinstall -d bin
\tinstall -m 755 exporter bin/slurm_exporter
"""
_EXPORTER = '''\
#!/usr/local/bin/python3
"""A Prometheus exporter of Slurm's node states on port 9341."""
import collections, http.server, subprocess


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        done = subprocess.run(["sinfo", "-h", "-N", "-o", "%T"], capture_output=True, text=True)
        counts = collections.Counter(done.stdout.split())
        lines = [f'slurm_nodes{{state="{state}"}} {count}\\\\n' for state, count in sorted(counts.items())]
        body = "".join(lines).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("", 9341), Handler).serve_forever()
'''


def curl(argv: list[str]) -> int:
    """``curl -fSsL -O <deb of enroot>``."""
    if "-O" in argv and argv and (match := ENROOT.fullmatch(argv[-1])):
        with open(match[1], "w", encoding="utf-8") as file:
            file.write("holdfast's stand-in for a package of enroot\n")
        return 0
    return real("/usr/bin/curl", argv)


def wget(argv: list[str]) -> int:
    """``wget -q <tar of Go> -O <file>``: a placeholder of Go."""
    if len(argv) == 4 and argv[0] == "-q" and GO.fullmatch(argv[1]) and argv[2] == "-O":
        import io
        import tarfile

        script = b'#!/bin/sh\necho "go: holdfast\'s stand-in compiles nothing" >&2\nexit 1\n'
        with tarfile.open(argv[3], "w:gz") as archive:
            member = tarfile.TarInfo("go/bin/go")
            member.size, member.mode = len(script), 0o755
            archive.addfile(member, io.BytesIO(script))
        return 0
    return real("/usr/bin/wget", argv)


def git(argv: list[str]) -> int:
    """``git clone`` of pyxis and of the Slurm exporter: a Makefile with the install target that the script uses."""
    known = {PYXIS: {"Makefile": _PYXIS_MAKEFILE}, EXPORTER: {"Makefile": _EXPORTER_MAKEFILE, "exporter": _EXPORTER}}
    if len(argv) > 2 and argv[0] == "clone" and argv[-2] in known:
        os.makedirs(argv[-1], exist_ok=True)
        if os.listdir(argv[-1]):
            sys.stderr.write(f"fatal: destination path '{argv[-1]}' already exists and is not an empty directory.\n")
            return 128
        sys.stderr.write(f"Cloning into '{argv[-1]}'...\n")
        for name, text in known[argv[-2]].items():
            with open(f"{argv[-1]}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        return 0
    return real("/usr/bin/git", argv)


def pip(argv: list[str]) -> int:
    """``pip install ansible==...``; other packages fail as without a network."""
    names = [word for word in argv[1:] if not word.startswith("-")]
    if argv[:1] != ["install"] or not names:
        sys.stderr.write(f"pip: holdfast's stand-in does not support: {' '.join(argv)}\n")
        return 1
    for name in names:
        if not re.fullmatch(r"ansible(==[0-9.]+)?", name):
            sys.stderr.write(
                f"ERROR: Could not find a version that satisfies the requirement {name} (from versions: none)\n"
                f"ERROR: No matching distribution found for {name}\n"
            )
            return 1
    for program in ("ansible", "ansible-galaxy"):
        if not os.path.lexists(f"/usr/local/bin/{program}"):
            os.symlink(f"/usr/local/lib/holdfast/bin/{program}", f"/usr/local/bin/{program}")
    print("Successfully installed " + " ".join(name.replace("==", "-") for name in names))
    return 0
