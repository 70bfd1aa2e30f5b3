"""Untrusted paths, kept beneath a folder."""


def safe_path(key: str) -> str | None:
    """Return a key relative to the prefix as a path below the association's directory; None for a path outside."""
    parts = key.split("/")
    if any(part in ("", ".", "..") or "\0" in part or len(part.encode()) > 255 for part in parts):
        return None
    return key
