"""Files of a lifecycle bundle and their hash; no CDK."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

HASH_LENGTH = 16
CONFIG = "config.json"
JOB_ENVIRONMENT = "job_environment.json"
MOUNTS = "mounts.json"
MOUNTS_OF = "mounts.{group}.json"
"""Those of a group that came after the others."""
ACCOUNTING = "accounting.json"
SCRIPTS, CHECKS = "scripts", "checks"


def collect(
    *,
    sources: Sequence[Path],
    scripts: Sequence[Path] = (),
    checks: Sequence[Path] = (),
    config: Mapping[str, object],
) -> dict[str, bytes]:
    """
    Files of the bundle: sources under their names, ``scripts``, ``checks``, ``config.json``.

    Raises:
        ValueError: a file is missing, two scripts or checks have the same name, or one has Windows line ends, with
            which a shell does not run it.
    """
    files: dict[str, bytes] = {}
    for source in (*sources, *scripts, *checks):
        if not source.exists():
            raise ValueError(f"lifecycle bundle: got the source {source}; allowed: a file or folder that exists")
    for folder, own in ((SCRIPTS, scripts), (CHECKS, checks)):
        for path in own:
            name = f"{folder}/{path.name}"
            if name in files:
                raise ValueError(f"lifecycle bundle: got two {folder} named {path.name}; allowed: names of their own")
            files[name] = path.read_bytes()
    for source in sources:
        paths = sorted(path for path in source.rglob("*") if _belongs(path)) if source.is_dir() else [source]
        files |= {path.relative_to(source.parent).as_posix(): path.read_bytes() for path in paths}
    for name, content in files.items():
        if (name.endswith(".sh") or content.startswith(b"#!")) and b"\r\n" in content:
            raise ValueError(f"lifecycle bundle: got CRLF line ends in {name}; allowed: LF; save it with LF")
    files[CONFIG] = (json.dumps(config, indent=2, sort_keys=True) + "\n").encode()
    return files


def entry(files: Mapping[str, bytes], setting: str, name: str | None) -> str | None:
    """File that HyperPod runs: the given one (ValueError if missing), or else the one named as the setting."""
    if name is None:
        return f"{setting}.sh" if f"{setting}.sh" in files else None
    if name not in files:
        raise ValueError(
            f"lifecycle bundle: got {setting} '{name}'; allowed: a file of the bundle "
            f"({', '.join(sorted(file for file in files if '/' not in file))})"
        )
    return name


def content_hash(files: Mapping[str, bytes]) -> str:
    """Hash of names and contents, independent of modes, times and order."""
    digest = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(), files[name]):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:HASH_LENGTH]


def _belongs(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
