"""Small OCI images in memory: a configuration, and a layer with a marker for ``holdfast-runc``. Reproducible. Pure."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
_LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
MARKER = ".holdfast-image"
"""The file in the root of each image; its one line is for ``holdfast-runc``."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    path: str
    """Absolute."""
    content: bytes | None = None
    """Default: a folder, or a link where ``link`` is given."""
    link: str = ""
    """Target of a symbolic link. Default: no link."""
    mode: int = 0o755
    owner: int = 0
    """Number of user and group."""


@dataclass(frozen=True, kw_only=True)
class Image:
    digest: str
    """Of the manifest."""
    blobs: Mapping[str, bytes]

    @property
    def manifest(self) -> bytes:
        return self.blobs[self.digest]


def digest_of(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def make_image(
    *, files: str, entries: Sequence[Entry], config: Mapping[str, Any], architecture: str = "amd64"
) -> Image:
    """Return an image of ``entries`` over the files that the marker names; ``config`` as in OCI's specification."""
    layer = _tar([Entry(path=f"/{MARKER}", content=f"{files}\n".encode(), mode=0o444), *entries])
    configuration = _json(
        {
            "architecture": architecture,
            "os": "linux",
            "config": dict(config),
            "rootfs": {"type": "layers", "diff_ids": [digest_of(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": _described(configuration, media_type=_CONFIG_TYPE),
            "layers": [_described(layer, media_type=_LAYER_TYPE)],
        }
    )
    return Image(digest=digest_of(manifest), blobs={digest_of(blob): blob for blob in (manifest, configuration, layer)})


def _described(blob: bytes, *, media_type: str) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest_of(blob), "size": len(blob)}


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _tar(entries: Sequence[Entry]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            info = tarfile.TarInfo(entry.path.strip("/"))
            info.mode, info.uid, info.gid = entry.mode, entry.owner, entry.owner
            if entry.link:
                info.type, info.linkname = tarfile.SYMTYPE, entry.link
            elif entry.content is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(entry.content)
            archive.addfile(info, io.BytesIO(entry.content or b""))
    return target.getvalue()
