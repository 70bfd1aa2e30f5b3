"""
Python environments of jobs, on the shared file system.

Built on this machine, since nodes have no package index: with an interpreter that nodes have under the same path, and
with pip's own settings; under the home, since a wheel of gigabytes has no room in many a TMPDIR. The user copies the
files, and owns them.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from holdfast.cli.deployed import Context, controller_hostname, instance, jobs_prefix
from holdfast.cli.terminal import CommandError

FOLDER = "envs"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LARGEST_SCRIPT = 1 << 20
_COPY_TIMEOUT_S = 600.0
_PUT = """set -eu
target=$1
folder=${target%/*}
[ -d "$folder" ] || { mkdir -p "$folder" && chmod 1777 "$folder"; }
rm -rf "$target.new"
mkdir "$target.new"
tar --extract --no-same-owner --directory "$target.new"
rm -rf "$target.old"
if [ -e "$target" ]; then mv "$target" "$target.old"; fi
mv "$target.new" "$target"
rm -rf "$target.old"
"""


@dataclass(frozen=True, kw_only=True)
class Environment:
    path: str
    """On the nodes."""
    python: str
    """Version, such as 3.11.7."""
    packages: tuple[str, ...]
    """``name==version``, by name."""


def check_requirements(file: Path, *, name: str | None) -> str:
    """Return the environment's name. Raises: CommandError: no such file, or an invalid name."""
    if not file.is_file():
        raise CommandError(f"got {file}, which is no file; allowed: a requirements file, as pip reads it")
    chosen = name if name is not None else re.sub(r"[^A-Za-z0-9._-]+", "-", file.resolve().parent.name).strip("-.")
    if not _NAME.fullmatch(chosen):
        raise CommandError(
            f"got {chosen!r} as the name of an environment; allowed: letters, digits, '.', '_' and '-', 64 at most; "
            "give it with --name"
        )
    return chosen


def make_environment(context: Context, *, file: Path, name: str, user: str, pip: Sequence[str]) -> Environment:
    """Create or replace an environment. Raises: CommandError: a package was not installed, or files not copied."""
    _, _, jobs = jobs_prefix(context)
    target = PurePosixPath(jobs).parent / FOLDER / name
    builds = context.local.home / "packages"
    builds.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=builds) as folder:
        made, temporary = Path(folder, name), Path(folder, ".tmp")
        temporary.mkdir()
        variables = {**os.environ, "TMPDIR": str(temporary)}
        create = [sys.executable, "-m", "venv", "--symlinks", str(made)]
        _run(create, what="an environment cannot be made here", variables=variables)
        python = str(made / "bin" / "python")
        install = [
            python,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            *pip,
            "-r",
            str(file.resolve()),
        ]
        _run(install, what=f"pip could not install {file}", variables=variables, cwd=file.resolve().parent)
        freeze = _run(
            [python, "-m", "pip", "freeze", "--disable-pip-version-check"], what="pip freeze", variables=variables
        )
        _refuse_links(freeze, file=file)
        move_scripts(made, to=str(target))
        _put(context, made, target=str(target), user=user)
    packages = tuple(sorted((line for line in freeze.splitlines() if line), key=str.lower))
    return Environment(path=str(target), python=".".join(map(str, sys.version_info[:3])), packages=packages)


def _refuse_links(freeze: str, *, file: Path) -> None:
    links = [line for line in freeze.splitlines() if line.startswith("-e ")]
    if links:
        raise CommandError(
            f"{file} requires {links[0]!r}, which links to a folder of this machine; allowed: packages without -e"
        )


def move_scripts(made: Path, *, to: str) -> None:
    """Replace the build path in scripts by the path on the nodes."""
    for path in (made / "pyvenv.cfg", *_scripts(made / "bin")):
        content = path.read_bytes()
        changed = content.replace(str(made).encode(), to.encode())
        if changed != content:
            path.write_bytes(changed)


def _scripts(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST_SCRIPT:
            continue
        with path.open("rb") as file:
            if b"\0" not in file.read(4096):
                yield path


def _put(context: Context, made: Path, *, target: str, user: str) -> None:
    node = instance(context, node=controller_hostname(context))
    tar = shutil.which("tar") or "tar"
    with subprocess.Popen([tar, "--create", "--directory", str(made), "."], stdout=subprocess.PIPE) as source:
        process = node.popen(
            ["/bin/sh", "-c", _PUT, "holdfast", target], user=user, stdin=source.stdout, stderr=subprocess.PIPE
        )
        try:
            _, errors = process.communicate(timeout=_COPY_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise CommandError(
                f"the environment was not on the nodes within {_COPY_TIMEOUT_S:g} s", exit_code=1
            ) from None
    if process.returncode or source.returncode:
        last = errors.decode(errors="replace").strip().splitlines() or ["the transfer ended early"]
        raise CommandError(f"the environment cannot be put at {target} as {user}: {last[-1]}", exit_code=1)


def _run(argv: Sequence[str], *, what: str, variables: Mapping[str, str], cwd: Path | None = None) -> str:
    done = subprocess.run(
        argv, check=False, capture_output=True, text=True, cwd=cwd, env=variables, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or done.stdout.strip().splitlines() or ["no output"]
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
        raise CommandError(f"{what}: {' '.join(errors)}", exit_code=1)
    return done.stdout
