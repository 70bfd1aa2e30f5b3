"""Accounts of the node, from its own files."""

from typing import NamedTuple, Optional

from holdfast_lifecycle.model import Context, User


class Account(NamedTuple):
    """A line of /etc/passwd."""

    name: str
    uid: int
    gid: int
    home: str

    @property
    def owner(self) -> tuple[int, int]:
        """Both numbers, as chown takes them."""
        return self.uid, self.gid


def account(context: Context, name: str) -> Optional[Account]:
    """None: nobody has that name."""
    for line in context.path("/etc/passwd").read_text().splitlines():
        fields = line.split(":")
        if fields[0] == name and len(fields) > 5 and fields[2].isdigit() and fields[3].isdigit():
            return Account(name=name, uid=int(fields[2]), gid=int(fields[3]), home=fields[5])
    return None


def name_of(context: Context, uid: int) -> str:
    """Whose number it is; the number itself where nobody has it."""
    for line in context.path("/etc/passwd").read_text().splitlines():
        fields = line.split(":")
        if len(fields) > 5 and fields[2] == str(uid):
            return fields[0]
    return str(uid)


def home_of(context: Context, user: User) -> str:
    """Return the path of a user's home: the chosen one, else on a shared file system, else on the node's own disk."""
    place = context.home_mount_path or context.fsx_mount_path or "/home"
    return user.home or f"{place}/{user.name}"


def is_shared(context: Context, path: str) -> bool:
    """Return True if a path is on a file system that all nodes share."""
    return any(f"{path}/".startswith(f"{top}/") for top in (context.home_mount_path, context.fsx_mount_path) if top)
