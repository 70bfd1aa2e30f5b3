"""Access to both programs, by a password in the home."""

import base64
import ctypes
import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

USER = "holdfast"
ANSWER_S = 5.0
_RECORD = "monitor/access.json"
_COST = "10"
_SALT = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True, kw_only=True)
class MonitorAccess:
    prometheus: str
    alertmanager: str
    password: str
    user: str = USER


def access_of(home: Path) -> MonitorAccess | None:
    try:
        return MonitorAccess(**json.loads((home / _RECORD).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def is_ready(home: Path) -> bool:
    access = access_of(home)
    return access is not None and all(
        fetch(url, "/-/ready", access=access) is not None for url in (access.prometheus, access.alertmanager)
    )


def fetch(url: str, path: str, *, access: MonitorAccess) -> bytes | None:
    import urllib.request  # slow to load

    token = base64.b64encode(f"{access.user}:{access.password}".encode()).decode()
    request = urllib.request.Request(url + path, headers={"Authorization": f"Basic {token}"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:  # noqa: S310
            content: bytes = answer.read()
    except OSError:
        return None
    return content


def write_access(home: Path, access: MonitorAccess) -> None:
    path = home / _RECORD
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(asdict(access), indent=2) + "\n")


def forget_access(home: Path) -> None:
    (home / _RECORD).unlink(missing_ok=True)


def bcrypt(password: str) -> str:
    """
    Return the hash that both programs take (prometheus.io/docs/prometheus/latest/configuration/https), by libcrypt.

    Raises:
        OSError: The system has no libcrypt, or one without bcrypt.
    """
    library = ctypes.CDLL("libcrypt.so.1", use_errno=True)
    library.crypt.restype = ctypes.c_char_p
    # The last of 22 characters holds two bits of the salt, and four that have to be none.
    salt = "".join(secrets.choice(_SALT) for _ in range(21)) + secrets.choice(".Oeu")
    found: bytes | None = library.crypt(password.encode(), f"$2b${_COST}${salt}".encode())
    if found is None or not found.startswith(b"$2"):
        raise OSError("crypt(3) of this system has no bcrypt")
    return found.decode()
