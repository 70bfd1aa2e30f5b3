"""
Patterns of ``.gitignore`` and ``.holdfastignore``, read as git reads them. Pure.

pathspec instead of ``git ls-files``: a folder need not be a repository, git need not be installed, git runs programs
that a repository's configuration names, and it lists no empty folder.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

IGNORE_FILES = (".gitignore", ".holdfastignore")
"""In the order in which they are read: the last pattern that matches decides."""
NEVER = frozenset({".git", "__pycache__"})
BY_DEFAULT = "by default"


@dataclass(frozen=True, kw_only=True)
class _Pattern:
    base: str
    """Folder of its file."""
    source: str
    regex: re.Pattern[str]
    leaves_out: bool
    """False for a negation."""

    def matches(self, path: str) -> bool:
        """
        Return True if it names this very entry.

        pathspec's expressions also match what is below a folder, which would let ``!.x`` decide about ``.x/runs``. A
        group of theirs marks the end of a folder; whatever it leads to is not the entry.
        """
        below = path.removeprefix(f"{self.base}/") if self.base else path
        return any(found.lastgroup is None or found.end() == len(below) for found in self.regex.finditer(below))


@dataclass(frozen=True, kw_only=True)
class IgnoreRules:
    """Patterns of a folder and of the folders above it, which have lower priority."""

    patterns: tuple[_Pattern, ...] = ()

    def with_files(self, *, base: str, files: Sequence[tuple[str, str]]) -> "IgnoreRules":
        """Return the rules below ``base``, a folder relative to the root of all paths."""
        if not files:
            return self
        from pathspec import GitIgnoreSpec

        found = [
            _Pattern(base=base, source=name, regex=one.regex, leaves_out=bool(one.include))
            for name, text in files
            for one in GitIgnoreSpec.from_lines(text.splitlines()).patterns
            if one.include is not None and one.regex is not None
        ]
        return IgnoreRules(patterns=(*self.patterns, *found))

    def source_of(self, path: str, *, is_folder: bool) -> str | None:
        """File whose pattern leaves ``path`` out; None if it is uploaded. Folders above are not checked."""
        if path.rpartition("/")[2] in NEVER:
            return BY_DEFAULT
        marked = f"{path}/" if is_folder else path
        decides = next((one for one in reversed(self.patterns) if one.matches(marked)), None)
        return decides.source if decides is not None and decides.leaves_out else None
