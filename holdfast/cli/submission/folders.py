"""
Entries of a job folder, listed before any content is read, without following links.

Files are compared with this list when they are read, so that an exchanged file is refused.
"""

import os
import pwd
import stat
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.cli.submission.ignoring import BY_DEFAULT, IGNORE_FILES, IgnoreRules
from holdfast.cli.terminal import CommandError

MAX_FOLDER_BYTES = 64 * 1024 * 1024
MAX_FILES = 20_000
COUNTED_FILES = 200_000
"""Where counting ends, of a folder that has too many."""
MAX_DEPTH = 100
MOST_IGNORE_BYTES = 1 << 20
LARGEST_NAMED = 3
_ADVICE = "list files to leave out in .holdfastignore, or put data into the data bucket"
_OF_THE_SYSTEM = frozenset(
    f"/{name}"
    for name in (
        "", "bin", "boot", "dev", "etc", "home", "lib", "mnt", "opt", "proc", "root", "run", "sbin", "srv", "sys",
        "tmp", "usr", "var", "var/tmp",
    )
)  # fmt: skip
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_SPECIAL = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
_NOT_FLAT = {
    stat.S_IFDIR: "folders, of which a ConfigMap has none",
    stat.S_IFLNK: "symbolic links, which are not followed",
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """File, folder or symbolic link to upload, as it was listed."""

    path: str
    """Relative to the folder."""
    info: os.stat_result
    target: str = ""
    """Of a symbolic link."""

    def is_same(self, info: os.stat_result) -> bool:
        """Return False if the file was changed or exchanged since."""
        return _identity(self.info) == _identity(info)


@dataclass(kw_only=True)
class JobFolder:
    root: Path
    entries: list[Entry] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Paths by what left them out: a file of patterns, or what they are."""

    @property
    def links(self) -> dict[str, str]:
        return {one.path: one.target for one in self.entries if stat.S_ISLNK(one.info.st_mode)}


def check_folder(folder: Path) -> None:
    """Refuse system and home folders before anything is read. Raises: CommandError."""
    if not folder.is_dir():
        raise CommandError(f"job folder {folder} is not a folder")
    if what := kind_of_folder(folder):
        raise CommandError(
            f"{folder.resolve()} is {what}, and would be uploaded as a whole; put the job file into its own folder"
        )


def kind_of_folder(folder: Path) -> str:
    """Kind of a folder that is never uploaded; empty for any other."""
    real = str(folder.resolve())
    return "a folder of the system" if real in _OF_THE_SYSTEM else "a home folder" if real in _homes() else ""


def read_folder(root: Path, *, always: str, is_flat: bool = False) -> JobFolder:
    """List the entries to upload. Raises: CommandError: unreadable, or too large; names the largest entries."""
    check_folder(root)
    found = JobFolder(root=root)
    top = repository_of(root) or root
    prefix = "" if top == root else root.relative_to(top).as_posix()
    _Lister(found=found, prefix=prefix, always=always, is_flat=is_flat).list(_rules_above(top, prefix))
    _check_size(found)
    return found


def open_unfollowed(path: Path) -> int:
    """Open a file that is not a link, without blocking on a FIFO. Raises: OSError."""
    return os.open(path, _OPEN)


def repository_of(folder: Path) -> Path | None:
    return next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)


@dataclass(kw_only=True)
class _Lister:
    """Walk by descriptors: a folder that becomes a link meanwhile is not followed."""

    found: JobFolder
    prefix: str
    always: str
    is_flat: bool
    count: int = 0
    files: Counter[str] = field(default_factory=Counter)
    """By the folder that they stand in."""

    def list(self, rules: IgnoreRules) -> None:
        try:
            descriptor = os.open(self.found.root, _OPEN | os.O_DIRECTORY)
        except OSError as error:
            raise _unreadable(self.found.root, error) from None
        try:
            self._folder("", descriptor, rules, depth=0)
        finally:
            os.close(descriptor)
        if self.count > MAX_FILES:
            raise self.too_many()

    def _folder(self, path: str, descriptor: int, rules: IgnoreRules, *, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise CommandError(f"{self.found.root / path} is more than {MAX_DEPTH} folders deep; flatten it")
        base = "/".join(filter(None, (self.prefix, path)))
        rules = rules.with_files(base=base, files=_ignore_files(descriptor))
        for name in sorted(os.listdir(descriptor)):
            one = f"{path}/{name}" if path else name
            try:
                info = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except FileNotFoundError:
                continue
            self._entry(one, name, info, descriptor, rules, base=base, depth=depth)

    def _entry(
        self, path: str, name: str, info: os.stat_result, parent: int, rules: IgnoreRules, *, base: str, depth: int
    ) -> None:
        is_folder = stat.S_ISDIR(info.st_mode)
        source = rules.source_of("/".join(filter(None, (base, name))), is_folder=is_folder)
        leads_to_job_file = self.always == path or self.always.startswith(f"{path}/")
        if source is not None and not leads_to_job_file:
            paths = self.found.left_out[source]
            if source != BY_DEFAULT:
                paths.append(f"{path}/" if is_folder else path)
            elif name not in paths:
                paths.append(name)
            return
        kinds = {**_SPECIAL, **(_NOT_FLAT if self.is_flat else {})}
        if kind := kinds.get(stat.S_IFMT(info.st_mode)):
            self.found.left_out[kind].append(path)
            return
        try:
            if is_folder:
                self.found.entries.append(Entry(path=path, info=info))
                descriptor = os.open(name, _OPEN | os.O_DIRECTORY, dir_fd=parent)
                try:
                    self._folder(path, descriptor, rules, depth=depth + 1)
                finally:
                    os.close(descriptor)
                return
            target = os.readlink(name, dir_fd=parent) if stat.S_ISLNK(info.st_mode) else ""
        except OSError as error:
            raise _unreadable(self.found.root / path, error) from None
        self.files[path.rpartition("/")[0]] += 1
        self.count += 1
        if self.count <= MAX_FILES:
            self.found.entries.append(Entry(path=path, info=info, target=target))
        elif self.count == COUNTED_FILES:
            raise self.too_many()

    def too_many(self) -> CommandError:
        """Folders with the most files, subfolders included, none inside another."""
        below: Counter[str] = Counter()
        for folder, count in self.files.items():
            parts = folder.split("/") if folder else []
            below.update({"/".join(parts[:depth]): count for depth in range(1, len(parts) + 1)})
        named: list[str] = []
        for folder, _ in sorted(below.items(), key=lambda one: (-one[1], one[0].count("/"), one[0])):
            if len(named) < LARGEST_NAMED and not any(f"{folder}/".startswith(f"{other}/") for other in named):
                named.append(folder)
        listed = ", ".join(f"{folder} ({below[folder]:,})" for folder in named) or "the folder itself"
        many = f"more than {COUNTED_FILES:,}" if self.count == COUNTED_FILES else f"{self.count:,}"
        return CommandError(
            f"{self.found.root} has {many} files, and at most {MAX_FILES:,} can be uploaded; most of them in "
            f"{listed}; {_ADVICE}"
        )


def _check_size(found: JobFolder) -> None:
    sizes: Counter[str] = Counter()
    for one in found.entries:
        if stat.S_ISREG(one.info.st_mode):
            sizes[one.path.partition("/")[0]] += one.info.st_size
    total = sizes.total()
    if total > MAX_FOLDER_BYTES:
        largest = ", ".join(f"{name} ({_mib(size)})" for name, size in sizes.most_common(3))
        raise CommandError(
            f"{found.root} has {_mib(total)}, and at most {MAX_FOLDER_BYTES >> 20} MiB can be uploaded; "
            f"largest: {largest}; {_ADVICE}"
        )


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"


def _ignore_files(descriptor: int) -> list[tuple[str, str]]:
    found = []
    for name in IGNORE_FILES:
        try:
            file = os.open(name, _OPEN, dir_fd=descriptor)
        except OSError:
            continue
        with os.fdopen(file, "rb") as opened:
            if stat.S_ISREG(os.fstat(file).st_mode):
                found.append((name, opened.read(MOST_IGNORE_BYTES).decode(errors="replace")))
    return found


def _rules_above(top: Path, prefix: str) -> IgnoreRules:
    rules = IgnoreRules()
    parts = prefix.split("/") if prefix else []
    for count in range(len(parts)):
        base = "/".join(parts[:count])
        try:
            descriptor = os.open(top / base, _OPEN | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            rules = rules.with_files(base=base, files=_ignore_files(descriptor))
        finally:
            os.close(descriptor)
        if rules.source_of("/".join(parts[: count + 1]), is_folder=True) is not None:
            return IgnoreRules()
    return rules


def _homes() -> frozenset[str]:
    homes = {str(Path(one.pw_dir).resolve()) for one in pwd.getpwall() if one.pw_uid >= 1000 or one.pw_uid == 0}
    return frozenset(homes | {str(Path(os.environ[name]).resolve()) for name in ("HOME",) if os.environ.get(name)})


def _unreadable(path: Path, error: OSError) -> CommandError:
    return CommandError(
        f"{str(path)!r} of the job folder cannot be read: {error.strerror}; make it readable, or "
        "name it in .holdfastignore"
    )


def _identity(info: os.stat_result) -> tuple[int, ...]:
    return info.st_dev, info.st_ino, info.st_mode, info.st_size, info.st_mtime_ns
