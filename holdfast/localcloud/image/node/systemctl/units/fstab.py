"""/etc/fstab as mount and automount units; systemd-fstab-generator(8), systemd.mount(5)."""

from __future__ import annotations

import os

from .files import Root
from .text import Unit, escape_path

_NETWORK = frozenset({"nfs", "nfs4", "lustre", "cifs", "ceph", "glusterfs", "efs", "9p"})
_FOLDER = "/run/systemd/generator"


def generate(root: Root) -> None:
    folder = root.at(_FOLDER)
    _clear(folder)
    try:
        with open(root.at("/etc/fstab"), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        fields = line.split()
        if len(fields) >= 3 and not line.lstrip().startswith("#") and fields[1].startswith("/"):
            _entry(folder, what=fields[0], where=fields[1], kind=fields[2], options=(fields[3:] or ["defaults"])[0])


def _entry(folder: str, *, what: str, where: str, kind: str, options: str) -> None:
    given = options.split(",")
    remote = kind in _NETWORK or "_netdev" in given
    target = "remote-fs.target" if remote else "local-fs.target"
    name = escape_path(where)
    text = f"[Unit]\nSourcePath=/etc/fstab\nBefore={target}\n\n[Mount]\n"
    text += f"What={_unquote(what)}\nWhere={_unquote(where)}\nType={kind}\nOptions={options}\n"
    _write(f"{folder}/{name}.mount", text)
    pulled = f"{name}.mount"
    if "x-systemd.automount" in given:
        pulled = f"{name}.automount"
        text = f"[Unit]\nSourcePath=/etc/fstab\nBefore={target}\n\n[Automount]\nWhere={_unquote(where)}\n"
        _write(f"{folder}/{pulled}", text)
    if "noauto" not in given or "x-systemd.automount" in given:
        how = "wants" if "nofail" in given else "requires"
        os.makedirs(f"{folder}/{target}.{how}", exist_ok=True)
        os.symlink(f"../{pulled}", f"{folder}/{target}.{how}/{pulled}")


def _unquote(field: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\134", "\\")):
        field = field.replace(code, character)
    return field


def _clear(folder: str) -> None:
    if os.path.isdir(folder):
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                _clear(entry.path)
                os.rmdir(entry.path)
            else:
                os.unlink(entry.path)
    os.makedirs(folder, exist_ok=True)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def where_of(unit: Unit) -> str:
    return unit.one("Mount" if unit.kind == "mount" else "Automount", "Where")


def is_mounted(where: str) -> bool:
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        return any(_unquote(line.split()[1]) == where for line in file)
