"""Download Debian's packages with a private apt, from the machine's mirrors of Debian 12 or Debian's own."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.localcloud.kubernetes.binaries.errors import BinariesError
from holdfast.localcloud.kubernetes.binaries.recipe import SUITE
from holdfast.localcloud.kubernetes.binaries.running import run
from holdfast.localcloud.kubernetes.binaries.stepping import Note

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_DEFAULT = {SUITE: "http://deb.debian.org/debian", f"{SUITE}-security": "http://deb.debian.org/debian-security"}
_NETWORK = ("Failed to fetch", "Could not resolve", "Could not connect", "Temporary failure", "Unable to locate")
_TOOLS = {"dpkg-deb": "dpkg", "setpriv": "util-linux"}
_SOURCE_TOOLS = {"tar": "tar", "gzip": "gzip"}
"""Program and the package that has it; the sources of Kubernetes are a .tar.gz."""
_FETCH_S, _UNPACK_S, _ASK_S = 3600.0, 600.0, 60.0


class Apt:
    """apt-get with its own lists, caches and sources below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def configure(self) -> None:
        for name in ("etc/parts", "etc/prefs", "lists/partial", "cache/archives/partial"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        (self._folder / "etc/parts/debian.sources").write_text(sources(_mirrors()))
        (self._folder / "status").touch()
        settings = {
            "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": self._folder / "etc/parts",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": self._folder / "etc/prefs",
            # An installed package that is newer than this suite's would be chosen, and no mirror of the suite has it.
            "Dir::State::status": self._folder / "status",
            "APT::Default-Release": "",
            "Dir::State::lists": self._folder / "lists",
            "Dir::Cache": self._folder / "cache",
            "Acquire::Languages": "none",
            "Acquire::Retries": "2",
            "Acquire::http::Timeout": "30",
            "APT::Sandbox::User": "root",
            "APT::Update::Error-Mode": "any",
        }
        (self._folder / "apt.conf").write_text("".join(f'{key} "{value}";\n' for key, value in settings.items()))

    def run(self, *arguments: str, into: Path, note: Note) -> None:
        into.mkdir(parents=True, exist_ok=True)

        def on_line(line: str) -> None:
            if line.startswith("Get:"):  # Get:1 MIRROR SUITE/COMPONENT ARCHITECTURE PACKAGE ...
                note(" ".join(line.split()[4:5]) or line)

        env = {**os.environ, "APT_CONFIG": str(self._folder / "apt.conf"), "LC_ALL": "C"}
        try:
            run(["apt-get", "-q", *arguments], env=env, cwd=into, deadline_s=_FETCH_S, on_line=on_line)
        except BinariesError as error:
            if any(word in str(error) for word in _NETWORK):
                raise BinariesError(_unreachable(str(error))) from None
            raise


def check_tools(*, compiles: bool) -> None:
    """Refuse a machine without the build's tools, before any download. Raises: BinariesError: names all of them."""
    if shutil.which("apt-get") is None:
        raise BinariesError(
            "there is no apt-get here, and the binaries are made from Debian's packages; "
            "build them on Debian or Ubuntu and name the folder with HOLDFAST_KUBERNETES=<folder>"
        )
    tools = _TOOLS | (_SOURCE_TOOLS if compiles else {})
    missing = [package for program, package in tools.items() if shutil.which(program) is None]
    missing += [] if KEYRING.exists() else ["debian-archive-keyring"]
    if missing:
        raise BinariesError(
            f"a build needs packages that are not installed; run: apt-get install {' '.join(sorted(missing))}"
        )


def fetch(work: Path, *, packages: Sequence[str], source: str | None, note: Note) -> None:
    """Download packages to ``work/debs`` and a source package to ``work/source``. Raises: BinariesError."""
    apt = Apt(work / "apt")
    apt.configure()
    note("lists of packages")
    apt.run("update", into=work, note=note)
    apt.run("download", *packages, into=work / "debs", note=note)
    if source is not None:
        apt.run("source", "--download-only", source, into=work / "source", note=note)


def unpack(work: Path, *, note: Note) -> None:
    tree = work / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for package in sorted((work / "debs").glob("*.deb")):
        note(package.name.partition("_")[0])
        run(["dpkg-deb", "-x", str(package), str(tree)], env=os.environ, deadline_s=_UNPACK_S)


def fetched_versions(work: Path) -> dict[str, str]:
    """Return package -> version, from the file names, where %3a is a colon."""
    names = [path.name.split("_") for path in sorted((work / "debs").glob("*.deb"))]
    return {package: version.replace("%3a", ":") for package, version, _ in names}


def sources(mirrors: Mapping[str, str]) -> str:
    """Return sources of binary and source packages, in apt's deb822 form. ``mirrors``: suite -> address."""
    return "\n".join(
        f"Types: deb deb-src\nURIs: {address}\nSuites: {suite}\nComponents: main\nSigned-By: {KEYRING}\n"
        for suite, address in sorted(mirrors.items())
    )


def mirrors_among(targets: str) -> dict[str, str]:
    """Return the first address of each suite of Debian 12 in lines "ADDRESS SUITE". Default: Debian's own."""
    found: dict[str, str] = {}
    for address, suite in (line.split()[:2] for line in targets.splitlines() if len(line.split()) >= 2):
        if suite == SUITE or suite.startswith(f"{SUITE}-"):
            found.setdefault(suite, address.rstrip("/"))
    return found if SUITE in found else _DEFAULT


def _mirrors() -> dict[str, str]:
    command = ["apt-get", "indextargets", "--no-release-info", "--format", "$(REPO_URI) $(RELEASE)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_ASK_S)
    return mirrors_among(done.stdout)


def _unreachable(output: str) -> str:
    lines = [line[line.index("E: ") :] for line in output.splitlines() if "E: " in line]
    why = (lines or output.splitlines())[0]
    return f"Debian's packages cannot be fetched ({why}); look at the network, and run the command again: it resumes"
