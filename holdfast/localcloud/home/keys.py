"""Keys of a home: random, created once, readable by its owner only."""

import json
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path

from holdfast.localcloud.home.private import private_bytes, write_private

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
"""Of access key ids (IAM user guide, "IAM identifiers", unique identifiers)."""
FILE = "credentials.json"


@dataclass(frozen=True, kw_only=True)
class Keys:
    """An access key. A session token belongs to the keys of a role's session."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)

    @property
    def boto(self) -> dict[str, str]:
        token = {"aws_session_token": self.session_token} if self.session_token else {}
        return {"aws_access_key_id": self.access_key_id, "aws_secret_access_key": self.secret_access_key, **token}


def fresh_keys() -> Keys:
    name = "".join(secrets.choice(LETTERS) for _ in range(16))
    return Keys(access_key_id=f"AKIA{name}", secret_access_key=secrets.token_urlsafe(30))


def keys_of(home: Path) -> Keys:
    """Return the keys. Raise FileNotFoundError without any, PermissionError if not private, or no keys."""
    path = _path(home)
    try:
        return Keys(**json.loads(private_bytes(path)))
    except (ValueError, TypeError):
        raise PermissionError(f"{path} holds no keys; delete it and start the embedded AWS again") from None


def made_keys(home: Path) -> Keys:
    """Return the keys of a home, created if missing. Raise PermissionError, as `keys_of`."""
    try:
        return keys_of(home)
    except FileNotFoundError:
        keys, path = fresh_keys(), _path(home)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, json.dumps({name: value for name, value in asdict(keys).items() if value}).encode())
        return keys


def _path(home: Path) -> Path:
    return home / "aws" / FILE
