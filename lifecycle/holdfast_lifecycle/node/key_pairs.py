"""SSH key pair of an account for access between nodes."""

import os
import shutil
import tempfile
from pathlib import Path

from holdfast_lifecycle.model import StepError, User
from holdfast_lifecycle.node.impersonation import as_user
from holdfast_lifecycle.node.programs import run_program
from holdfast_lifecycle.node.services import wait_until

KEY = "id_ed25519"
_KEYS = 0o700
"""sshd takes no keys from a folder that others may write to."""
_OTHERS_S = 10.0
"""Another node writes the public key right after the private one."""


def missing_key_pair(keys: Path) -> str:
    for name in (KEY, f"{KEY}.pub", "authorized_keys"):
        if not (keys / name).is_file():
            return f"{keys / name} is missing"
    public = (keys / f"{KEY}.pub").read_text().strip()
    return "" if public in (keys / "authorized_keys").read_text().splitlines() else "its key is not in authorized_keys"


def give_key_pair(home: Path, user: User, *, node: str, work: Path) -> None:
    """
    Give an account a pair, unless it has one.

    Args:
        work: Folder of root for temporary files.

    Raises:
        StepError: The account's folder cannot be used.
    """
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        made = Path(folder, KEY)
        run_program("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", user.name, "-f", str(made))
        pair = made.read_bytes(), made.with_suffix(".pub").read_bytes()
    complaint = as_user(user, lambda: _keep_keys(home, *pair, node=node))
    if complaint:
        raise StepError(
            expected=f"'{user.name}' has a key pair in {home / '.ssh'}",
            seen=complaint,
            action="check that folder, remove or complete it, and run the lifecycle again",
        )


def _keep_keys(home: Path, private: bytes, public: bytes, *, node: str) -> None:
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
