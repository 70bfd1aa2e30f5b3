"""Images built and unpacked with buildah, in temporary storage, without registry and EFA."""

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from holdfast.localcloud.containers.store import ImageError, ImageStore, StoredImage
from holdfast.localcloud.nodes.kernel.mounts import mount_entries

TIMEOUT_S = 900
TOOLS = {"buildah": "buildah", "mmdebstrap": "mmdebstrap"}
TRAINING = "holdfast-training:latest"
_BASE = "localhost/holdfast-base:local"
_SITE = "usr/lib/python3/dist-packages"
_PACKAGES = ("torch", "torchgen", "numpy", "numpy.libs", "sympy", "mpmath", "networkx", "jinja2", "markupsafe")
_WITHOUT = {"training": ("ACCELERATOR=cpu", "WHEELS=none"), "health-agent": ("WHEELS=none",)}
_OF_FILES = ("docker-archive:", "oci-archive:", "oci:", "dir:")
_MODULES = ("filelock", "fsspec", "typing_extensions.py", "xxhash")


class PackagesError(ImageError): ...


class Buildah:
    """buildah with its own storage. Its errors become ``ImageError``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.options = ("--root", str(folder / "storage"), "--runroot", str(folder / "run"))

    def run(self, *arguments: str) -> str:
        return _run("buildah", *self.options, *arguments, temporary=self.folder)

    @contextlib.contextmanager
    def files(self, image: str) -> Iterator[Path]:
        container = self.run("from", "--pull-never", image).strip()
        try:
            yield Path(self.run("mount", container).strip())
        finally:
            self.run("umount", container)
            self.run("rm", container)


def _run(program: str, *arguments: str, temporary: Path | None = None) -> str:
    """Run a program; ``temporary``: folder for what it unpacks as root. Default: TMPDIR of this process."""
    environment = {**os.environ, "TMPDIR": str(temporary)} if temporary else None
    try:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            umask=0o022,
            env=environment,
        )
    except FileNotFoundError:
        raise ImageError(f"the program {program} is missing; install Debian's package {program}") from None
    except subprocess.TimeoutExpired:
        raise ImageError(f"{program} timed out after {TIMEOUT_S} s") from None
    if done.returncode:
        raise ImageError(
            f"{program} failed with exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-800:]}"
        )
    return done.stdout


@contextlib.contextmanager
def buildah(*, below: Path) -> Iterator[Buildah]:
    """Yield temporary storage. ``below``: folder of root with free space."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-images-", dir=below))
    tool = Buildah(folder)
    try:
        yield tool
    finally:
        with contextlib.suppress(ImageError):
            tool.run("umount", "--all")
        for place in _mounted_below(folder):
            subprocess.run(["umount", "--lazy", place], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)


def _mounted_below(folder: Path) -> list[str]:
    points = [entry.point for entry in mount_entries(Path("/proc/self/mountinfo").read_text())]
    return [point for point in reversed(points) if point.startswith(f"{folder}/")]


def store_image(store: ImageStore, *, tool: Buildah, image: str, name: str) -> StoredImage:
    described: dict[str, Any] = json.loads(tool.run("inspect", "--type", "image", image))
    config = {"config": described["OCIv1"].get("config", {}), "architecture": described["OCIv1"].get("architecture")}

    def unpack(folder: Path) -> None:
        with tool.files(image) as files:
            _run("cp", "--archive", "--reflink=auto", "--no-target-directory", str(files), str(folder))

    return store.add(name, digest=f"sha256:{described['FromImageID']}", config=config, unpack=unpack)


def add_image(store: ImageStore, *, source: str, name: str) -> StoredImage:
    """
    Add an image.

    Args:
        source: An archive, or a name of buildah and skopeo: ``docker-archive:FILE``, ``oci-archive:FILE``,
            ``oci:FOLDER``, ``docker://REGISTRY/IMAGE:TAG``.
    """
    place = Path(source.partition(":")[2] if source.startswith(_OF_FILES) else source)
    if place.is_symlink():
        raise ImageError(f"{place} is a symbolic link, which is not followed; name {place.resolve()}")
    with buildah(below=_room(store)) as tool:
        image = tool.run("pull", "--quiet", _with_transport(source)).strip().splitlines()[-1]
        return store_image(store, tool=tool, image=image, name=name)


def _with_transport(source: str) -> str:
    if not Path(source).is_file():
        return source
    try:
        with tarfile.open(source, mode="r:") as archive:
            kind = "oci" if any(member.name.lstrip("./") == "oci-layout" for member in archive) else "docker"
    except tarfile.TarError:
        kind = "docker"
    return f"{kind}-archive:{source}"


def build_training_image(
    store: ImageStore, *, containers: Path, name: str = TRAINING, progress: Callable[[str], None] = lambda _: None
) -> StoredImage:
    """Build and store the training image of this checkout. Takes a minute or two and 3 GiB meanwhile."""
    lacking = [package for program, package in TOOLS.items() if shutil.which(program) is None]
    commands = [f"apt-get install {' '.join(lacking)}"] if lacking else []
    if importlib.util.find_spec("torch") is None:
        commands.append(f"{shlex.quote(sys.executable)} -m pip install torch numpy")
    if commands:
        raise ImageError(f"programs or packages for building the image are missing; run: {' && '.join(commands)}")
    with buildah(below=_room(store)) as tool:
        progress("making the base from Debian's packages and this environment's torch")
        make_base(tool, tag=_BASE)
        progress("building the Dockerfile")
        image = build(tool, containers=containers, base=_BASE, tag=name)
        progress("unpacking")
        return store_image(store, tool=tool, image=image, name=name)


def _room(store: ImageStore) -> Path:
    store.create()
    return store.directory.parent


def make_base(tool: Buildah, *, tag: str) -> None:
    """Make the base image: Debian with Python and this environment's torch, without CUDA."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise ImageError("this environment has no torch to put into the image; run make setup")
    site = Path(found.origin).parents[1]
    container = tool.run("from", "scratch").strip()
    with tempfile.TemporaryDirectory(dir=tool.folder) as folder:
        archive = Path(folder) / "base.tar"
        options = ("--variant=minbase", "--include=python3,libgomp1", "bookworm", str(archive))
        try:
            _run("mmdebstrap", *options, temporary=Path(folder))
        except ImageError as error:
            raise PackagesError(f"Debian's packages cannot be downloaded: {error}") from error
        tool.run("add", container, str(archive), "/")
    root = Path(tool.run("mount", container).strip())
    for name in (*_PACKAGES, *_MODULES, f"torch-{importlib.metadata.version('torch')}.dist-info"):
        source, target = site / name, root / _SITE / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy2(source, target)
    tool.run("umount", container)
    tool.run("commit", "--disable-compression", container, tag)
    tool.run("rm", container)


def build(
    tool: Buildah, *, containers: Path, base: str, tag: str, image: Literal["training", "health-agent"] = "training"
) -> str:
    """Build one of our Dockerfiles (default: training) without EFA and PyPI wheels; return the image's id."""
    dockerfile = containers / image / "Dockerfile"
    if not dockerfile.is_file():
        raise ImageError(f"no {dockerfile}; give the folder containers/ of a checkout")
    # Without namespaces of its own: the machine may have none to give.
    options = (f"BASE_IMAGE={base}", *_WITHOUT[image])
    arguments = [*(f"--build-arg={option}" for option in options), "--isolation", "chroot"]
    arguments += ["--format", "docker", "--tag", tag, "--file", str(dockerfile), str(containers)]
    return tool.run("build", "--quiet", *arguments).strip().splitlines()[-1]
