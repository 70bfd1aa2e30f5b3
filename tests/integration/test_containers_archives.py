"""Archives of images as somebody else may have made them: what is stored of them, and what is left of those refused."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.localcloud.containers import ImageError, ImageStore, add_image

pytestmark = [
    pytest.mark.root,
    pytest.mark.timeout(120),
    pytest.mark.skipif(shutil.which("buildah") is None, reason="needs buildah"),
]
LAYER = "application/vnd.oci.image.layer.v1.tar"


def layer_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return target.getvalue()


def a_file(name: str, content: bytes = b"content") -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), content


def a_link(name: str, *, to: str) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, to
    return info, b""


def write_archive(path: Path, layer: bytes, *, tampered: bytes | None = None) -> Path:
    """An OCI archive of one layer. ``tampered``: what stands in the archive instead of it. Default: the layer."""
    blobs: dict[str, bytes] = {}

    def described(blob: bytes, kind: str) -> dict[str, object]:
        digest = hashlib.sha256(blob).hexdigest()
        blobs[digest] = blob
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(blob)}

    layers = [described(layer, LAYER)]
    rootfs = {"type": "layers", "diff_ids": [layers[0]["digest"]]}
    config = {"architecture": "amd64", "os": "linux", "config": {"Cmd": ["/a"]}, "rootfs": rootfs}
    manifest = {
        "schemaVersion": 2,
        "config": described(json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json"),
        "layers": layers,
    }
    index = {
        "schemaVersion": 2,
        "manifests": [described(json.dumps(manifest).encode(), "application/vnd.oci.image.manifest.v1+json")],
    }
    if tampered is not None:
        blobs[hashlib.sha256(layer).hexdigest()] = tampered
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode()}
    files |= {f"blobs/sha256/{digest}": blob for digest, blob in blobs.items()}
    path.write_bytes(layer_of(*(a_file(name, content) for name, content in files.items())))
    return path


def left(store: ImageStore) -> list[str]:
    """All that is in the store's home, but for what is there from the start."""
    home = store.directory.parent
    return sorted(
        str(path.relative_to(home)) for path in home.rglob("*") if path.name not in ("images", "refs", ".lock")
    )


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(home=tmp_path / "home")


def test_an_archive_is_stored_without_saying_which_kind_it_is(store: ImageStore, tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.tar", layer_of(a_file("a")))

    added = add_image(store, source=str(archive), name="app:1")

    assert store.find("app:1") == added
    assert (store.folder(added) / "rootfs/a").read_text() == "content"
    assert json.loads((store.folder(added) / "config.json").read_text())["config"]["Cmd"] == ["/a"]


@pytest.mark.parametrize("same_size", [True, False])
def test_a_layer_that_is_not_what_its_digest_says_is_refused(
    store: ImageStore, tmp_path: Path, same_size: bool
) -> None:
    layer = layer_of(a_file("a", b"good"))
    other = layer_of(a_file("a", b"evil")) if same_size else layer + b"\0" * 512
    archive = write_archive(tmp_path / "a.tar", layer, tampered=other)

    with pytest.raises(ImageError, match="buildah ended with"):
        add_image(store, source=str(archive), name="app:1")

    assert left(store) == []


@pytest.mark.parametrize("how", ["../" * 12, "/", "out/"])
def test_no_name_in_a_layer_leads_out_of_the_image(store: ImageStore, tmp_path: Path, how: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    name = f"{how}{'' if how == 'out/' else str(target).lstrip('/') + '/'}written"
    archive = write_archive(tmp_path / "a.tar", layer_of(a_link("out", to=str(target)), a_file(name)))

    try:
        add_image(store, source=str(archive), name="app:1")
    except ImageError:
        assert left(store) == []

    assert list(target.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08rubbish"])
def test_what_is_no_archive_is_refused_in_one_line(store: ImageStore, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(content)

    with pytest.raises(ImageError, match="buildah ended with"):
        add_image(store, source=str(tmp_path / "a.tar"), name="app:1")

    assert left(store) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_leaves_nothing_half_made(small_disk: Path, tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.tar", layer_of(a_file("a", os.urandom(8 << 20))))
    store = ImageStore(home=small_disk / "home")

    with pytest.raises(ImageError, match=r"[Nn]o space left"):
        add_image(store, source=str(archive), name="app:1")

    assert left(store) == []
