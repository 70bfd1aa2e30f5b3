"""Turn the source text of this Python's standard library into one file of byte tokens.

    python prepare.py [--out DIR] [--bucket NAME]

The same Python always gives the same bytes: files sorted by path, third-party packages and test suites left out.
``tokens.bin`` holds one unsigned byte per token; ``meta.json`` says how many, from which Python, and their SHA-256.
With --bucket both are uploaded to s3://NAME/data/bytelm/, from where the file system imports them.
"""

import argparse
import hashlib
import json
import os
import platform
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "data/bytelm"
SKIPPED = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}


def source_files(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED)
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".py"))


def prepare(*, root: Path, out: Path) -> dict[str, str | int]:
    """Write tokens.bin, then meta.json, which marks completion."""
    files = list(source_files(root))
    tokens = b"\n".join(path.read_bytes() for path in files)
    if not tokens:
        raise SystemExit(f"error: no .py files under {root}; run this with a Python that has its standard library")
    out.mkdir(parents=True, exist_ok=True)
    meta: dict[str, str | int] = {
        "tokens": len(tokens),
        "sha256": hashlib.sha256(tokens).hexdigest(),
        "files": len(files),
        "source": f"standard library of Python {platform.python_version()}",
    }
    _replace(out / "tokens.bin", tokens)
    _replace(out / "meta.json", (json.dumps(meta, indent=2) + "\n").encode())
    return meta


def _replace(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f".{path.name}.tmp")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def upload(*, out: Path, bucket: str) -> None:
    """Upload both files to the imported prefix; meta.json last."""
    import boto3  # only here: preparing needs nothing but Python

    s3 = boto3.client("s3")
    for name in ("tokens.bin", "meta.json"):
        s3.upload_file(str(out / name), bucket, f"{PREFIX}/{name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder to write tokens.bin and meta.json to. Default: none is kept")
    parser.add_argument("--bucket", help="S3 bucket to upload to. Default: none, the files stay in --out")
    arguments = parser.parse_args()
    if arguments.out is None and arguments.bucket is None:
        parser.error("name a folder with --out, a bucket with --bucket, or both")
    with tempfile.TemporaryDirectory() as scratch:
        run(out=arguments.out or Path(scratch), bucket=arguments.bucket)


def run(*, out: Path, bucket: str | None) -> None:
    """Prepare, and upload if a bucket is given."""
    meta = prepare(root=Path(sysconfig.get_path("stdlib")), out=out)
    print(f"{meta['tokens']} byte tokens from {meta['files']} files of the {meta['source']} in {out}")
    if bucket:
        upload(out=out, bucket=bucket)
        print(f"uploaded to s3://{bucket}/{PREFIX}/")


if __name__ == "__main__":
    main()
