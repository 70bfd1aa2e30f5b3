from typing import NamedTuple, Optional

from holdfast_lifecycle.model import Context, User


class Account(NamedTuple):
    name: str
    uid: int
    gid: int
    home: str

    @property
    def owner(self) -> tuple[int, int]:
        return self.uid, self.gid


def account(context: Context, name: str) -> Optional[Account]:
    for line in context.path("/etc/passwd").read_text().splitlines():
        fields = line.split(":")
        if fields[0] == name and len(fields) > 5 and fields[2].isdigit() and fields[3].isdigit():
            return Account(name=name, uid=int(fields[2]), gid=int(fields[3]), home=fields[5])
    return None


def name_of(context: Context, uid: int) -> str:
    """Name of a number; the number itself without one."""
    for line in context.path("/etc/passwd").read_text().splitlines():
        fields = line.split(":")
        if len(fields) > 5 and fields[2] == str(uid):
            return fields[0]
    return str(uid)


def home_of(context: Context, user: User) -> str:
    """Path of a user's home: the chosen one, else on a shared file system, else on the node's disk."""
    place = context.home_mount_path or context.fsx_mount_path or "/home"
    return user.home or f"{place}/{user.name}"


def is_shared(context: Context, path: str) -> bool:
    return any(f"{path}/".startswith(f"{top}/") for top in (context.home_mount_path, context.fsx_mount_path) if top)
