"""A container image of a few of this machine's programs, made in a moment."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from holdfast.localcloud.containers import ImageStore, StoredImage

PROGRAMS = ("sh", "ls", "cat", "id", "env", "sleep", "stat", "touch", "mkdir", "readlink", "setsid", "grep", "pwd")


def add_small_image(store: ImageStore, *, name: str, **config: Any) -> StoredImage:
    """Store it. ``config``: fields of the image's configuration, as OCI spells them."""
    document = {"config": config}
    digest = hashlib.sha256(repr((name, document)).encode()).hexdigest()
    return store.add(name, digest=f"sha256:{digest}", config=document, unpack=_unpack)


def _unpack(root: Path) -> None:
    for folder in ("bin", "etc", "tmp", "work", "home"):
        (root / folder).mkdir()
    for program in PROGRAMS:
        source = Path(str(shutil.which(program))).resolve()
        _copy(source, root / "bin" / program)
        linked = subprocess.run(["ldd", str(source)], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+)", linked):
            _copy(Path(library).resolve(), root / library.lstrip("/"))
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n")
    (root / "etc/of-the-image").write_text("small\n")
    shutil.copyfile("/bin/sh", root / "bin/setuid-sh")
    (root / "bin/setuid-sh").chmod(0o4755)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755)
