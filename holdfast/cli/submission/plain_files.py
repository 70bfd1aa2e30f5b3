"""Files named on the command line: job files, manifests, programs that prepare data."""

import os
import posixpath
import re
import shlex
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.cli.submission.folders import check_folder, kind_of_folder, open_unfollowed, repository_of
from holdfast.cli.submission.job_text import JobTextError, check_text
from holdfast.cli.terminal import CommandError

MOST_BYTES = 16 << 20
_PATH = re.compile(r"(?<![\w./$}-])(?:\$\{?(?:SLURM_SUBMIT_DIR|PWD)\}?/|\./)?(\.?[\w-][\w.-]*(?:(?:/[\w.-]+)+|\.\w+))")
_ABOVE = re.compile(
    r"(?<![\w./$}-])(?:\./)?((?:\.\./)+\w[\w./-]*)"
    r"|\$\{?(?:SLURM_SUBMIT_DIR|PWD)\}?/((?:\.\./)*\.\.(?![\w.-])(?:/\w[\w./-]*)?)"
)
SUBMISSION = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, kw_only=True)
class JobFile:
    folder: Path
    """Without links in it."""
    path: str
    """Of the file, relative to the folder."""
    start: str = "."
    """Folder in which sbatch is called, relative to the folder."""
    remark: str = ""
    """Reason for another folder than that of the file."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def read(self) -> bytes:
        """Return the content. Raises: CommandError."""
        real = Path(os.path.realpath(self.folder / self.path))
        if not real.is_relative_to(self.folder):
            raise CommandError(f"{self.path} is a symbolic link out of the job folder; submit again")
        return read_plain(real)


def job_file(file: Path, *, folder: Path | None = None) -> JobFile:
    """
    Find the folder of a job file: that of the file, or the current one, where sbatch would start it, if it is above and
    only there the files are that the job file names. Files that it names by ``../`` are in the folder too.

    Raises:
        CommandError: no such file, a folder, or a link that leads out of it.
    """
    if not os.path.lexists(file):
        raise CommandError(f"job file {file} does not exist")
    if file.is_dir():
        raise CommandError(f"{file} is not a file; name the job file itself, such as {file}/job.sbatch")
    parent = file.parent.resolve()
    root = parent if folder is None else folder.resolve()
    place = parent / file.name
    if not place.is_relative_to(root):
        raise CommandError(f"got --folder {folder}, and {file} is not in it; allowed: a folder above the job file")
    if place.is_symlink() and not Path(os.path.realpath(place)).is_relative_to(root):
        raise CommandError(
            f"{file} is a symbolic link that leads out of the job folder, and is not followed; name "
            f"{os.path.realpath(place)}"
        )
    found = JobFile(folder=root, path=place.relative_to(root).as_posix())
    if folder is not None:
        return found
    text = found.read().decode(errors="replace")
    current = Path.cwd()
    if current in root.parents and not kind_of_folder(current) and (named := _only_in(current, found, text=text)):
        path = place.relative_to(current).as_posix()
        remark = f"the job folder is {current}, since {path} names {', '.join(named[:3])}"
        found = JobFile(folder=current, path=path, remark=remark)
    return _with_folders_above(found, text=text)


def _with_folders_above(file: JobFile, *, text: str) -> JobFile:
    named = [word for word in _words(_ABOVE, text) if (file.folder / word).exists()]
    if not named:
        return file
    levels, parents = max(word.split("/").count("..") for word in named), file.folder.parents
    root = parents[min(levels, len(parents)) - 1]
    if what := kind_of_folder(root):
        remark = f"{file.name} names {named[0]}, and {root} is {what}, which is not uploaded; move both into a folder"
        return replace(file, remark=remark)
    start = file.folder.relative_to(root).as_posix()
    path = f"{start}/{file.path}"
    remark = f"the job folder is {root}, since {path} names {', '.join(named[:3])}; the job starts in {start}"
    return JobFile(folder=root, path=path, start=start, remark=remark)


def check_batch_file(file: JobFile) -> None:
    """Raise CommandError for a system or home folder, and for text that sbatch refuses."""
    check_folder(file.folder)
    try:
        check_text(file.read(), name=str(file.path))
    except JobTextError as error:
        raise CommandError(str(error)) from None


def check_submission(name: str | None) -> None:
    """Raise CommandError for an invalid name of a submission."""
    if name is not None and not SUBMISSION.fullmatch(name):
        raise CommandError(
            f"got --submission {name!r}; allowed: up to 64 letters, digits, '.', '_' and '-', such as llama-8b"
        )


def read_plain(path: Path) -> bytes:
    """Read a regular file that is not a link. Raises: CommandError: another kind, or unreadable."""
    try:
        with os.fdopen(open_unfollowed(path), "rb") as opened:
            info = os.fstat(opened.fileno())
            if not stat.S_ISREG(info.st_mode) or info.st_size > MOST_BYTES:
                raise CommandError(f"{path} is no regular file of at most {MOST_BYTES >> 20} MiB")
            return opened.read()
    except OSError as error:
        raise CommandError(f"{str(path)!r} cannot be read: {error.strerror}") from None


def check_plain(path: Path, *, what: str) -> None:
    """Raise CommandError if the file does not exist, or is a link."""
    if path.is_symlink():
        raise CommandError(f"{what} {path} is a symbolic link, which is not followed; name {os.path.realpath(path)}")
    if not path.is_file():
        raise CommandError(f"{what} {path} does not exist")


def names_outside(file: JobFile, text: str) -> str:
    """Remark if the job file names files of the repository that are not uploaded; empty otherwise."""
    repository = repository_of(file.folder)
    if repository is None or not (outside := _only_in(repository, file, text=text)):
        return ""
    return (
        f"{file.name} names {outside[0]}, which is in the repository but outside the job folder "
        f"{file.folder.relative_to(repository)}/; to upload the repository: --folder {shlex.quote(str(repository))}"
    )


def names_left_out(file: JobFile, text: str, left_out: Mapping[str, Sequence[str]]) -> str:
    """Remark if the job file names files that patterns leave out; empty otherwise."""
    for word in _words(_PATH, text):
        path = posixpath.normpath(posixpath.join(file.start, word))
        for source, entries in left_out.items():
            for one in entries:
                if f"{path}/".startswith(f"{one.rstrip('/')}/"):
                    return (
                        f"{file.name} names {word}, which is left out ({source}); to upload it: the line !/{one} in "
                        ".holdfastignore; for an environment on the nodes: holdfast packages"
                    )
    return ""


def _only_in(folder: Path, file: JobFile, *, text: str) -> list[str]:
    """Files that the job file names, and that are in this folder and not in its own."""
    own = file.folder / file.start
    return [word for word in _words(_PATH, text) if (folder / word).exists() and not (own / word).exists()]


def _words(pattern: re.Pattern[str], text: str) -> list[str]:
    """Paths that the commands of a job file name."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return list(dict.fromkeys(filter(None, (found[found.lastindex or 0] for found in pattern.finditer(lines)))))
