"""
Root file system of pods "on the node's files": the node's programs, read-only.

Only listed paths are mounted: no secrets, settings, logs or other file systems of the node.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .layers import Entry

STAND_INS = "/opt/kube/bin/holdfast-stand-ins"
"""Path on nodes of the stand-in for device plugins, DNS and the like."""
PROGRAMS = "/opt/holdfast/bin"
"""Folder of a stand-in image's programs."""
PATH = f"{PROGRAMS}:/opt/holdfast/env/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
USER = 10001
"""Of the training image: ``containers/training/Dockerfile``."""

_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SHOWN = ("/usr", "/etc/alternatives", "/etc/ssl/certs")
_SHOWN_FILES = ("/etc/ld.so.cache", STAND_INS)
_COPIED = ("host.conf", "gai.conf", "protocols", "services", "debian_version", "ssl/openssl.cnf")
_OWN = (
    "/dev", "/etc", "/etc/ssl", "/home", "/mnt", "/opt", "/opt/holdfast", "/opt/kube", "/opt/kube/bin", PROGRAMS,
    "/proc", "/run", "/srv", "/sys", "/var", "/var/cache", "/var/lib", "/var/log",
)  # fmt: skip
_OWN_MODES = {"/root": 0o711, "/tmp": 0o1777, "/var/tmp": 0o1777}  # noqa: S108
"""/root lets others through: an interpreter may be shown below it."""
_ACCOUNTS = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    f"holdfast:x:{USER}:{USER}::/home/holdfast:/usr/sbin/nologin\n",
    "/etc/group": f"root:x:0:\nnogroup:x:65534:\nholdfast:x:{USER}:\n",
    # Names of nodes come from files alone; those of pods come from the cluster's DNS.
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


@dataclass(frozen=True, kw_only=True)
class NodeRoot:
    environment: tuple[str, ...] = ()
    """Folders of the node with the Python environment and its interpreter. Default: pods have none."""
    machine: Path = Path("/")
    """Whose small files in /etc are copied, and whose layout of /bin and /lib nodes have."""

    def entries(self) -> list[Entry]:
        """Return the layer with the mount points, parents first."""
        made = [Entry(path=path) for path in _OWN]
        made += [Entry(path=path, mode=mode) for path, mode in _OWN_MODES.items()]
        made.append(Entry(path="/home/holdfast", mode=0o700, owner=USER))
        for name in _MERGED:
            there = self.machine / name
            if there.is_symlink():
                made.append(Entry(path=f"/{name}", link=str(there.readlink())))
        made += [Entry(path=path, content=text.encode(), mode=0o644) for path, text in _ACCOUNTS.items()]
        for name in _COPIED:
            if (self.machine / "etc" / name).is_file():
                content = (self.machine / "etc" / name).read_bytes()
                made.append(Entry(path=f"/etc/{name}", content=content, mode=0o644))
        made.append(Entry(path="/var/run", link="/run"))
        made.append(Entry(path="/etc/os-release", link="../usr/lib/os-release"))
        made += [Entry(path=path, content=b"", mode=0o644) for path in _SHOWN_FILES]
        known = {entry.path for entry in made}
        for path in self._folders():
            for place in [*reversed(Path(path).parents), Path(path)][1:]:
                if str(place) not in known:
                    known.add(str(place))
                    made.append(Entry(path=str(place)))
        return made

    def fstab(self) -> str:
        """Return the same paths as lines of fstab(5), parents first. Paths that a node lacks are skipped."""
        return "".join(f"{_escaped(path)} {_escaped(path)} none bind,ro,nofail 0 0\n" for path in self._shown())

    def _shown(self) -> list[str]:
        return sorted([*self._folders(), *_SHOWN_FILES])

    def _folders(self) -> Iterator[str]:
        yield from _SHOWN
        for name in _MERGED:
            if (self.machine / name).is_dir() and not (self.machine / name).is_symlink():
                yield f"/{name}"
        yield from self.environment


def _escaped(path: str) -> str:
    return "".join(f"\\{ord(letter):03o}" if letter in " \t\n\\#" else letter for letter in path)
