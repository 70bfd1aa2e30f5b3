"""
The users of the environment file have their homes; one on a shared file system also has a key pair, for all nodes.

As AWS's add_users.sh and gen-keypair-ubuntu.sh leave them. All nodes do this at the same time: a home, and the folder
of its keys, get their names when they are whole, and the first ones in place are everybody's.
"""

import os
import tempfile
from pathlib import Path

from holdfast_lifecycle.model import Context, StepError, User
from holdfast_lifecycle.node import KEY, as_user, home_of, is_shared, missing_key_pair, run_program, wait_until

_CLOSED, _KEYS = 0o750, 0o700
"""HOME_MODE of Ubuntu 22.04's login.defs; sshd takes no keys from a folder that others may write to."""
_OTHERS_S = 10.0
"""Another node writes the public key right after the private one."""


def _missing(context: Context, user: User) -> str:
    """What is not yet so; empty when all is."""
    home = context.path(home_of(context, user))
    if not home.is_dir() or home.is_symlink() or home.stat().st_uid != user.uid:
        return f"{home} is not a folder of its own"
    if home.stat().st_mode & 0o022:
        return f"{home} may be written to by others"
    if not is_shared(context, home_of(context, user)):
        return ""
    return missing_key_pair(home / ".ssh")


def check(context: Context) -> bool:
    return not any(_missing(context, user) for user in context.users)


def apply(context: Context) -> None:
    for user in context.users:
        _refuse_unmounted(context, user)
        _make_if_possible(context, user)


def _make_if_possible(context: Context, user: User) -> None:
    try:
        _make(context, user)
    except OSError as error:
        raise StepError(
            expected=f"user '{user.name}' has the home {home_of(context, user)}",
            seen=f"it cannot be made: {error}",
            action="give the user another home under lifecycle.users, or make room for this one",
        ) from error


def _make(context: Context, user: User) -> None:
    home = context.path(home_of(context, user))
    if not home.is_symlink() and not home.exists():
        _place(context, home, user)
    _own(home, user)
    if is_shared(context, home_of(context, user)):
        _give_keys(home, user, node=context.instance_id)
    data = context.path(f"{context.fsx_mount_path}/{user.name}")
    if context.fsx_mount_path and not data.exists():  # where its home is elsewhere, as add_users.sh has it
        _place(context, data, user)


def _own(home: Path, user: User) -> None:
    """Give the folder to the user, by a descriptor: a link that takes its place meanwhile leads root nowhere."""
    try:
        folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        raise _not_its_own(home, user, "it is a link or a file") from None
    try:
        state = os.fstat(folder)
        if state.st_uid not in (0, user.uid):
            raise _not_its_own(home, user, f"it belongs to uid {state.st_uid}")
        if state.st_uid == 0 and os.listdir(folder):  # noqa: PTH208  a descriptor, no path
            raise _not_its_own(home, user, "it belongs to root and is not empty")
        os.fchown(folder, user.uid, user.uid)
        os.fchmod(folder, state.st_mode & 0o755)
    finally:
        os.close(folder)


def _not_its_own(home: Path, user: User, seen: str) -> StepError:
    return StepError(
        expected=f"{home} is a folder that belongs to '{user.name}'",
        seen=seen,
        action="see whose it is and move it away, or give the user another home under lifecycle.users",
    )


def _refuse_unmounted(context: Context, user: User) -> None:
    top = context.home_mount_path
    if not top or not f"{home_of(context, user)}/".startswith(f"{top}/"):
        return
    mounted = [line.split()[4] for line in context.path("/proc/self/mountinfo").read_text().splitlines()]
    if top not in mounted:
        raise StepError(
            expected=f"the file system of home directories is mounted at {top}",
            seen="no file system is mounted there",
            action="check that the file system is AVAILABLE and in reach of the nodes",
        )


def _place(context: Context, home: Path, user: User) -> None:
    """Make a folder under another name, which the step fsx leaves alone, and give it its own name when it is whole."""
    import shutil  # only here: importing it takes as long as a step

    home.parent.mkdir(parents=True, exist_ok=True)
    fresh = home.with_name(f".{home.name}.{context.instance_id}")
    shutil.rmtree(fresh, ignore_errors=True)
    skeleton = context.path("/etc/skel")
    shutil.copytree(skeleton, fresh, symlinks=True) if skeleton.is_dir() else fresh.mkdir()
    for path in (fresh, *fresh.rglob("*")):
        os.chown(path, user.uid, user.uid, follow_symlinks=False)
    fresh.chmod(_CLOSED)
    try:
        fresh.rename(home)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        if not home.is_dir():
            raise


def _give_keys(home: Path, user: User, *, node: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, KEY)
        run_program("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", user.name, "-f", str(made))
        pair = made.read_bytes(), made.with_suffix(".pub").read_bytes()
    complaint = as_user(user, lambda: _keep_keys(home, *pair, node=node))
    if complaint:
        raise StepError(
            expected=f"'{user.name}' has a key pair in {home / '.ssh'}",
            seen=complaint,
            action="see what is in that folder, remove or complete it, and run the lifecycle again",
        )


def _keep_keys(home: Path, private: bytes, public: bytes, *, node: str) -> None:
    """As the user: the new pair where there is none, and the pair that is there authorised."""
    keys = home / ".ssh"
    if not keys.is_dir():
        _make_folder(keys, {KEY: private, f"{KEY}.pub": public, "authorized_keys": public}, node=node)
    if not (keys / KEY).exists() and _is_first(keys / KEY, private, node=node):
        _write(keys / f"{KEY}.pub", public, node=node, mode=0o644)
    wait_until((keys / f"{KEY}.pub").exists, timeout_s=_OTHERS_S)
    own = (keys / f"{KEY}.pub").read_text().strip()
    authorised = keys / "authorized_keys"
    before = authorised.read_text().splitlines() if authorised.exists() else []
    if own not in before:
        _write(authorised, ("\n".join([*before, own]) + "\n").encode(), node=node)


def _make_folder(keys: Path, files: dict[str, bytes], *, node: str) -> None:
    import shutil

    fresh = keys.with_name(f".ssh.{node}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=_KEYS)
    for name, content in files.items():
        _write(fresh / name, content, node=node, mode=0o644 if name.endswith(".pub") else 0o600)
    try:
        fresh.rename(keys)
    except OSError:  # another node was first
        shutil.rmtree(fresh)


def _is_first(key: Path, private: bytes, *, node: str) -> bool:
    own = key.with_name(f".{key.name}.{node}.key")
    _write(own, private, node=node)
    try:
        os.link(own, key)
    except FileExistsError:
        return False
    finally:
        own.unlink()
    return True


def _write(path: Path, content: bytes, *, node: str, mode: int = 0o600) -> None:
    unfinished = path.with_name(f".{path.name}.{node}")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(descriptor, "wb") as file:  # noqa: PTH123  a descriptor, no path
        file.write(content)
    unfinished.replace(path)


def verify(context: Context) -> str:
    for user in context.users:
        missing = _missing(context, user)
        if missing:
            raise StepError(
                expected=f"user '{user.name}' has the home {home_of(context, user)}",
                seen=missing,
                action="look for a program on the node that changes it",
            )
    return ", ".join(f"{user.name}: {home_of(context, user)}" for user in context.users)
