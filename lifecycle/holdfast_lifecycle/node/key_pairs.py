"""The key pair with which an account goes from node to node."""

from pathlib import Path

KEY = "id_ed25519"


def missing_key_pair(keys: Path) -> str:
    """Return what is not there yet of a pair in an account's ``.ssh`` that is authorised; empty when all is."""
    for name in (KEY, f"{KEY}.pub", "authorized_keys"):
        if not (keys / name).is_file():
            return f"{keys / name} is not there"
    public = (keys / f"{KEY}.pub").read_text().strip()
    return "" if public in (keys / "authorized_keys").read_text().splitlines() else "its own key is not authorised"
