"""An image of 10 GB: stored once for all nodes, and its pods start at once."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import IO, Any

import pytest
from kubernetes_http import Api
from kubernetes_things import pod, pods_path, ready_nodes, wait_phase
from local_eks import LocalEks

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.kubernetes,
    pytest.mark.root,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(shutil.which("buildah") is None, reason="needs buildah"),
]

NAME = "111122223333.dkr.ecr.us-west-2.amazonaws.com/large:1"
SIZE_BYTES = 10 << 30
BLOCK_BYTES = 1 << 20
OTHER_FILES_BYTES = 64 << 20
DISK_BYTES = 3 * SIZE_BYTES
MEDIA = "application/vnd.oci.image"
PROGRAM = """
#include <stdio.h>
#include <sys/stat.h>
int main(void) {
    struct stat found;
    if (stat("/large", &found) != 0) return 1;
    printf("%lld\\n", (long long)found.st_size);
    return 0;
}
"""


class Digested(io.RawIOBase):
    """A file that is written once, and the digest of what went in."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._file, self._digest, self.size = file, hashlib.sha256(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._digest.update(data)
        self.size += len(data)
        self._file.write(data)
        return len(data)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


class Blocks(io.RawIOBase):
    """A file of that many bytes, no two blocks alike, that is nowhere."""

    def __init__(self, size: int) -> None:
        self._left, self._number = size, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        assert size >= 0
        size = min(size, self._left)
        self._left -= size
        self._number += 1
        return self._number.to_bytes(8, "big").ljust(size, b"\0")[:size]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An OCI archive with one layer: a large file, and a program that says how large it is."""
    if shutil.disk_usage(tmp_path).free < DISK_BYTES:
        pytest.skip(f"needs {DISK_BYTES >> 30} GiB of disk")
    layout = tmp_path / "layout"
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    program = tmp_path / "size"
    subprocess.run(["gcc", "-static", "-xc", "-o", str(program), "-"], input=PROGRAM.encode(), check=True)
    with (tmp_path / "layer").open("wb") as file:
        packed = Digested(file)
        with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1, mtime=0) as compressed:
            unpacked = Digested(compressed)
            with tarfile.open(fileobj=unpacked, mode="w|", bufsize=BLOCK_BYTES) as tar:
                large = tarfile.TarInfo("large")
                large.size = SIZE_BYTES
                tar.addfile(large, Blocks(SIZE_BYTES))
                tar.add(program, arcname="size")
    (tmp_path / "layer").rename(blobs / packed.digest)
    layer = {"mediaType": f"{MEDIA}.layer.v1.tar+gzip", "digest": f"sha256:{packed.digest}", "size": packed.size}

    def written(document: dict[str, Any], kind: str) -> dict[str, Any]:
        content = json.dumps(document).encode()
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"mediaType": f"{MEDIA}.{kind}.v1+json", "digest": f"sha256:{digest}", "size": len(content)}

    roots = {"type": "layers", "diff_ids": [f"sha256:{unpacked.digest}"]}
    config = written({"architecture": "amd64", "os": "linux", "config": {"Cmd": ["/size"]}, "rootfs": roots}, "config")
    manifest = written({"schemaVersion": 2, "config": config, "layers": [layer]}, "manifest")
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    path = tmp_path / "large.tar"
    with tarfile.open(path, "w") as tar:
        for entry in sorted(layout.rglob("*")):
            tar.add(entry, arcname=str(entry.relative_to(layout)), recursive=False)
    shutil.rmtree(layout)
    return path


def test_an_image_of_10_gb_is_stored_once_and_pods_of_every_node_have_it(
    api: Api, namespace: str, local_eks: LocalEks, archive: Path
) -> None:
    images = local_eks.home / "images"
    before = used_bytes(local_eks.home)
    holdfast(local_eks, "images", "add", str(archive), NAME)
    try:
        nodes = ready_nodes(api)
        for node in nodes:
            api.post(pods_path(namespace), pod(f"on-{node}", image=NAME, command=["/size"], nodeName=node))
        for node in nodes:
            wait_phase(api, namespace, f"on-{node}", "Succeeded")
            assert api.text(f"{pods_path(namespace, f'on-{node}')}/log").split() == [str(SIZE_BYTES)]
        assert len(nodes) > 1
        assert used_bytes(images) >= SIZE_BYTES
        assert used_bytes(local_eks.home) - before < SIZE_BYTES + OTHER_FILES_BYTES, "one copy for all nodes"
    finally:
        holdfast(local_eks, "images", "remove", NAME)
    assert used_bytes(local_eks.home) - before < OTHER_FILES_BYTES


def holdfast(local_eks: LocalEks, *words: str) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "holdfast"), *words],
        env={**os.environ, "HOLDFAST_HOME": str(local_eks.home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def used_bytes(folder: Path) -> int:
    """Of this file system, not of those mounted below it."""
    done = subprocess.run(["du", "-sxB1", str(folder)], capture_output=True, text=True, check=False)
    return int(done.stdout.split()[0])
