"""
Entries of a job folder that do not travel: ``.gitignore`` and ``.holdfastignore``, read as git reads them. Pure.

pathspec and not ``git ls-files``: a folder need not be a repository, git need not be installed, git runs programs that
the configuration of a repository names, and it lists no empty folder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILES = (".gitignore", ".holdfastignore")
"""In the order in which they are read: the last pattern that matches decides."""
ALWAYS = (".git", "__pycache__/")
"""What is no source of a job; ``!.git`` in a file takes it along."""
BY_DEFAULT = "by default"


@dataclass(frozen=True, kw_only=True)
class _Level:
    """The patterns of one folder."""

    base: str
    spec: "GitIgnoreSpec"
    sources: tuple[str, ...]
    """The file of each line."""


@dataclass(frozen=True, kw_only=True)
class IgnoreRules:
    """Patterns of a folder and of the folders above it, which weigh less."""

    levels: tuple[_Level, ...] = ()

    @staticmethod
    def default() -> "IgnoreRules":
        return IgnoreRules()._with_lines("", [(BY_DEFAULT, line) for line in ALWAYS])

    def with_files(self, *, base: str, files: Sequence[tuple[str, str]]) -> "IgnoreRules":
        """
        The rules below ``base``, a folder relative to where paths begin.

        Args:
            files: (name, text) of its ignore files.
        """
        return self._with_lines(base, [(name, line) for name, text in files for line in text.splitlines()])

    def _with_lines(self, base: str, lines: Sequence[tuple[str, str]]) -> "IgnoreRules":
        from pathspec import GitIgnoreSpec

        if not lines:
            return self
        spec = GitIgnoreSpec.from_lines(line for _, line in lines)
        return IgnoreRules(levels=(*self.levels, _Level(base=base, spec=spec, sources=tuple(n for n, _ in lines))))

    def source_of(self, path: str, *, is_folder: bool) -> str | None:
        """The file whose pattern leaves ``path`` out; None where it travels. Folders above it are not asked."""
        for level in reversed(self.levels):
            below = path.removeprefix(f"{level.base}/") if level.base else path
            found = level.spec.check_file(f"{below}/" if is_folder else below)
            if found.include is not None:
                return level.sources[found.index or 0] if found.include else None
        return None
