"""The files of a lifecycle bundle and the hash of their content; no CDK in here."""

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
    The bundle: each source under its own name, folders with all below them, scripts in ``scripts``, checks in
    ``checks``, ``config.json``.

    Raises:
        ValueError: a source, script or check is absent, two scripts or checks have the same name, or one has Windows
            line ends, with which a shell does not run it.
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
        if (name.endswith((".sh", ".py")) or content.startswith(b"#!")) and b"\r\n" in content:
            raise ValueError(f"lifecycle bundle: got CRLF line ends in {name}; allowed: LF; save it with LF")
    files[CONFIG] = (json.dumps(config, indent=2, sort_keys=True) + "\n").encode()
    return files


def entry(files: Mapping[str, bytes], setting: str, name: str | None) -> str | None:
    """
    The file that HyperPod runs first: the one of the given name, or else the one that is called like the setting.

    Raises:
        ValueError: there is no file of the given name.
    """
    if name is None:
        return f"{setting}.sh" if f"{setting}.sh" in files else None
    if name not in files:
        raise ValueError(
            f"lifecycle bundle: got {setting} '{name}'; allowed: a file of the bundle "
            f"({', '.join(sorted(file for file in files if '/' not in file))})"
        )
    return name


def content_hash(files: Mapping[str, bytes]) -> str:
    """A hash of names and contents; modes, times and the order of reading do not matter."""
    digest = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(), files[name]):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:HASH_LENGTH]


def _belongs(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
