"""The library, compiled once per home and per version of its source."""

import hashlib
import logging
import shutil
import subprocess
import sysconfig
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from holdfast.catalog import InstanceType
from holdfast.localcloud.gpus.answers import ANSWERS, healthy
from holdfast.localcloud.nodes import FileSpec, Mount

_SOURCE = Path(__file__).with_name("nvml.c")
_NAME = "libnvidia-ml.so.1"
_COMPILE_TIMEOUT_S = 60.0
_PATH = "/usr/local/bin:/usr/bin:/bin"

_log = logging.getLogger(__name__)


class Gpus:
    """GPU library of one home's nodes, compiled in the background. Thread-safe."""

    def __init__(self, *, home: Path) -> None:
        beside = ThreadPoolExecutor(1, "nvml")
        self._library: Future[Path | None] = beside.submit(_prepared, home / "hyperpod" / "nvml")
        beside.shutdown(wait=False)

    def mounts(self, kind: InstanceType) -> tuple[Mount, ...]:
        if not healthy(kind):
            return ()
        library = self._library.result()
        return (Mount(source=library, target=f"{_folder()}/{_NAME}", read_only=True),) if library else ()

    def files(self, kind: InstanceType) -> dict[str, FileSpec]:
        text = healthy(kind)
        return {ANSWERS: FileSpec(content=text.encode())} if text else {}


def _folder() -> str:
    """Return the first system library folder of the dynamic linker."""
    multiarch = sysconfig.get_config_var("MULTIARCH")
    return next((f"/usr/lib/{name}" for name in (multiarch, "x86_64-linux-gnu") if name and _has(name)), "/usr/lib64")


def _has(name: str) -> bool:
    return Path("/usr/lib", name).is_dir()


def _prepared(folder: Path) -> Path | None:
    place = folder / hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16] / _NAME
    try:
        if not place.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                made = Path(fresh) / _NAME
                compile_library(made)
                made.replace(place)
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("nodes have no NVML: %s", error)
        return None
    return place


def compile_library(target: Path, *, answers: str = ANSWERS) -> None:
    """Compile the library; ``answers`` is the file it reads, by default a node's. Raise OSError with the output."""
    compiler = shutil.which("gcc", path=_PATH)
    if compiler is None:
        raise OSError("the program gcc is missing; install Debian's packages gcc and libc6-dev")
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-s", f'-DANSWERS="{answers}"', f"-Wl,-soname,{_NAME}"]
    command = [compiler, *options, "-o", str(target), str(_SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_TIMEOUT_S, check=False)
    if done.returncode:
        raise OSError(f"gcc could not compile {_SOURCE.name}: {done.stderr[-500:]}")
    target.chmod(0o755)
