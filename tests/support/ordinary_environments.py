"""
Python environments and an image as people make them, from this machine's own Python and torch.

They are made on this machine at the path that nodes see as another one, so no node needs a package index.
"""

import hashlib
import importlib.metadata
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from holdfast.localcloud.containers import ImageStore

SYSTEM_PYTHON = Path("/usr/bin/python3")
IMAGE_NAME = "pytorch as a team builds it"
PROGRAMS = ("bash", "sh", "cat", "date", "echo", "env", "hostname", "id", "ls", "mkdir", "sleep", "wc")
INSTALL_TIMEOUT_S = 600


class EnvironmentsError(Exception):
    """This machine cannot make them; says what is missing."""


def make_venv(place: Path, *, at: str, requirements: Path | None = None, uses: str | None = None) -> None:
    """
    ``python3 -m venv``, with torch and what a requirements file names.

    Args:
        at: Where nodes see it.
        uses: A venv of the nodes whose packages it takes by a .pth file. Default: it has its own.
    """
    asked = [str(SYSTEM_PYTHON), "-c", "import sys; print(sys.version_info[:2])"]
    if (found := _run(*asked).strip()) != str(sys.version_info[:2]):
        raise EnvironmentsError(f"{SYSTEM_PYTHON} is {found} and torch is for {sys.version_info[:2]}")
    _run(str(SYSTEM_PYTHON), "-m", "venv", str(place))
    packages = _packages_of(place / "bin" / "python3")
    if uses is None:
        _add_torch(packages, programs=place / "bin", python=f"{at}/bin/python")
    else:
        (packages / "uses.pth").write_text(f"{uses}/{packages.relative_to(place)}\n")
    if requirements is not None:
        _run(str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "-r", str(requirements))
    for path in [place / "pyvenv.cfg", *(place / "bin").iterdir()]:
        content = b"" if path.is_symlink() or not path.is_file() else path.read_bytes()
        if content and b"\0" not in content[:4096]:
            path.write_bytes(content.replace(str(place).encode(), at.encode()))


def make_conda(place: Path, *, at: str, environment: str) -> None:
    """
    A folder as Miniconda makes it: ``bin/activate`` with a ``conda`` for the shell, as ``conda shell.bash hook`` prints
    it, and an environment.

    Args:
        at: Where nodes see it.
    """
    prefix = place / "envs" / environment
    _copy_python(prefix)
    _add_torch(
        _packages_of(prefix / "bin" / "python"),
        programs=prefix / "bin",
        python=f"{at}/envs/{environment}/bin/python",
    )
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta" / "history").touch()
    (place / "bin").mkdir()
    activate = place / "bin" / "activate"
    activate.write_text(
        f"""conda() {{
    [ "$1" = activate ] || return 1
    export CONDA_PREFIX={at}/envs/$2 CONDA_DEFAULT_ENV=$2 CONDA_SHLVL=1
    export PATH=$CONDA_PREFIX/bin:$PATH
}}
"""
    )
    hook = place / "bin" / "conda"
    hook.write_text(f'#!/bin/sh\n[ "$*" = "shell.bash hook" ] && cat {at}/bin/activate\n')
    hook.chmod(0o755)


def make_image_root(root: Path) -> None:
    """The files of an image with bash, Python and torch."""
    prefix = root / "usr/local"
    _copy_python(prefix)
    _add_torch(_packages_of(prefix / "bin/python"), programs=prefix / "bin", python="/usr/local/bin/python")
    for folder in ("bin", "dev", "etc", "home", "proc", "root", "sys", "tmp", "workspace"):
        (root / folder).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    copied = [Path(str(shutil.which(program))).resolve() for program in PROGRAMS]
    for program, source in zip(PROGRAMS, copied, strict=True):
        shutil.copy2(source, root / "bin" / program)
    libraries = [path for path in prefix.rglob("*.so*") if path.is_file() and not path.is_symlink()]
    for library in _libraries([prefix / "bin/python", *copied, *libraries]):
        target = root / str(library).lstrip("/")
        if prefix not in library.parents and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(library.resolve(), target)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nubuntu:x:1000:1000::/home:/bin/bash\n")
    (root / "etc/group").write_text("root:x:0:\nubuntu:x:1000:\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    (root / "etc/image-name").write_text(f"{IMAGE_NAME}\n")


def add_image(store: ImageStore, root: Path, *, names: tuple[str, ...]) -> None:
    """Let names mean an image of these files, as ``holdfast images add`` does."""
    settings = {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "Cmd": ["/bin/bash"], "WorkingDir": "/workspace"}
    digest = hashlib.sha256(f"{root} {settings}".encode()).hexdigest()

    def unpack(place: Path) -> None:
        shutil.copytree(root, place, symlinks=True, dirs_exist_ok=True)

    for name in names:
        store.add(name, digest=f"sha256:{digest}", config={"config": settings}, unpack=unpack)


def _copy_python(prefix: Path) -> None:
    """The interpreter of this environment with its library, so that it runs in another place."""
    base, version = Path(sys.base_prefix), f"python{sys.version_info.major}.{sys.version_info.minor}"
    left = shutil.ignore_patterns("site-packages", "dist-packages", "test", "idlelib", "config-*")
    shutil.copytree(base / "lib" / version, prefix / "lib" / version, ignore=left)
    for library in (base / "lib").glob("libpython*.so*"):
        shutil.copy2(library, prefix / "lib" / library.name, follow_symlinks=False)
    (prefix / "bin").mkdir()
    # A shared libpython is named by the path of this machine, which is hidden on nodes.
    here, moved = f"{base}/lib\0".encode(), b"$ORIGIN/../lib\0"
    if len(here) < len(moved):
        raise EnvironmentsError(f"the path {base} is too short to be exchanged in the interpreter")
    program = (base / "bin" / version).read_bytes().replace(here, moved.ljust(len(here), b"\0"))
    (prefix / "bin" / version).write_bytes(program)
    (prefix / "bin" / version).chmod(0o755)
    for name in ("python", "python3"):
        (prefix / "bin" / name).symlink_to(version)


def _packages_of(python: Path) -> Path:
    """Where an interpreter has its packages."""
    found = _run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    Path(found).mkdir(parents=True, exist_ok=True)
    return Path(found)


def _add_torch(packages: Path, *, programs: Path, python: str) -> None:
    seen: set[str] = set()
    for distribution in [*_needed("torch", seen=seen), *_needed("numpy", seen=seen)]:
        for file in distribution.files or ():
            source = Path(str(distribution.locate_file(file)))
            if ".." not in file.parts and source.is_file():
                target = packages / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
    torchrun = programs / "torchrun"
    torchrun.write_text(f"#!{python}\nimport sys\nfrom torch.distributed.run import main\nsys.exit(main())\n")
    torchrun.chmod(0o755)


def _needed(name: str, *, seen: set[str]) -> Iterator[importlib.metadata.Distribution]:
    """A distribution and those that it requires, where they are installed."""
    if name in seen:
        return
    seen.add(name)
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return
    yield found
    for requirement in found.requires or ():
        if "extra ==" not in requirement:
            yield from _needed(re.split(r"[^A-Za-z0-9._-]", requirement)[0], seen=seen)


def _libraries(files: list[Path]) -> Iterator[Path]:
    """What the loader finds for programs and libraries."""
    for file in files:
        done = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False)
        yield from (Path(name) for name in re.findall(r"(/\S+) \(0x", done.stdout))


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
    if done.returncode:
        raise EnvironmentsError(f"{' '.join(argv)}: {done.stderr.strip()[-400:]}")
    return done.stdout
