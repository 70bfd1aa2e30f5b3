"""
Tables of the packages and their rooms with their imports, for the pages of the architecture and of the rooms.

An import that follows from others is left out, and so is a package's own ``__init__``: it imports everything.
"""

import ast
import functools
import graphlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from distributions import ROOT, package_roots
from import_graph import Import, imports_among, modules_below
from markdown_table import table

FLOORS = {
    "8 command line": ["holdfast.cli"],
    "7 rehearsal": ["holdfast.localcloud"],
    "6 an app": ["app", "holdfast_stacks"],
    "5 constructs": ["holdfast_constructs"],
    "4 changes and imports": ["holdfast.importing", "holdfast.updates"],
    "3 rules": ["holdfast.validation"],
    "2 environment files and costs": ["holdfast.planner", "holdfast.config"],
    "1 alone on a node": ["holdfast_runtime", "holdfast_agent", "holdfast_operator", "holdfast_lifecycle"],
    "0 facts and events": ["holdfast.catalog", "holdfast.environments", "holdfast.session_manager", "holdfast_common"],
}
"""From top to bottom. A package that is not listed is an error: it has no floor yet."""
OWN_CHAPTER = ("holdfast.localcloud.aws", "holdfast.localcloud.hyperpod", "holdfast_runtime.launcher")
"""Rooms with rooms of their own that get a chapter too."""

Arrows = dict[tuple[str, str], bool]
"""From, to, and whether the import waits in every file that has it."""


@dataclass(frozen=True, kw_only=True)
class Tree:
    files: Mapping[str, Path]
    imports: tuple[Import, ...]

    def rooms(self, package: str) -> list[str]:
        return sorted(
            name
            for name, path in self.files.items()
            if name.rpartition(".")[0] == package and path.name == "__init__.py"
        )

    def summary(self, package: str) -> str:
        """First sentence of a package's docstring, without its period."""
        text = ast.get_docstring(ast.parse(self.files[package].read_text())) or ""
        first = " ".join(text.partition("\n\n")[0].split())
        return first.partition(". ")[0].rstrip(".").replace("|", "\\|").replace("``", "`")


@functools.cache
def read_tree(root: Path = ROOT) -> Tree:
    files = {"app": root / "app.py", **modules_below(root / each.relative_to(ROOT) for each in package_roots())}
    return Tree(files=files, imports=tuple(imports_among(files)))


def top_arrows(tree: Tree) -> Arrows:
    packages = [name for floor in FLOORS.values() for name in floor]
    homeless = {name for name in tree.files if _box(name, packages) is None} - {"holdfast"}
    if homeless:
        raise SystemExit(f"{sorted(homeless)[0]} is on no floor of FLOORS in scripts/package_tables.py: give it one")
    return _between(tree.imports, packages)


def room_arrows(tree: Tree, package: str) -> Arrows:
    inside = [one for one in tree.imports if one.importer.startswith(f"{package}.")]
    beside = sorted(
        name for name in tree.files if name.rpartition(".")[0] == package and name not in tree.rooms(package)
    )
    return _between(inside, [*tree.rooms(package), *beside])


def _between(imports: Iterable[Import], boxes: list[str]) -> Arrows:
    found: Arrows = {}
    for one in imports:
        start, end = _box(one.importer, boxes), _box(one.module, boxes)
        if start and end and start != end:
            found[start, end] = found.get((start, end), True) and one.waits
    return _without_what_follows(found)


def _box(module: str, boxes: Iterable[str]) -> str | None:
    return next((box for box in boxes if module == box or module.startswith(f"{box}.")), None)


def _without_what_follows(arrows: Arrows) -> Arrows:
    """Leave out arrows implied by a longer path, if there is no circle."""
    after: dict[str, set[str]] = {}
    for start, end in arrows:
        after.setdefault(start, set()).add(end)
    try:
        tuple(graphlib.TopologicalSorter(after).static_order())
    except graphlib.CycleError:
        return dict(sorted(arrows.items()))

    def reached(start: str) -> set[str]:
        return {each for end in after.get(start, ()) for each in {end, *reached(end)}}

    return {
        (start, end): waits
        for (start, end), waits in sorted(arrows.items())
        if not any(end in reached(other) for other in after[start] - {end})
    }


def floors_table(tree: Tree) -> str:
    arrows = top_arrows(tree)
    rows = [(floor, f"`{_label(name)}`", _imported(arrows, name)) for floor in FLOORS for name in FLOORS[floor]]
    return table(("floor", "package", "imports"), rows)


def _imported(arrows: Arrows, name: str, *, inside: str = "") -> str:
    ends = [(_label(end.removeprefix(inside)), waits) for (start, end), waits in arrows.items() if start == name]
    return ", ".join(f"`{end}` (when needed)" if waits else f"`{end}`" for end, waits in ends)


def _label(name: str) -> str:
    return "app.py" if name == "app" else name


def rooms_page(tree: Tree) -> str:
    packages = [name for floor in FLOORS.values() for name in floor if tree.rooms(name)]
    chapters = [_chapter(tree, name) for each in packages for name in (each, *_chapters_inside(each))]
    head = [
        "# The rooms",
        "",
        "Each package and its folders, from their docstrings and imports.",
        "[Architecture](../concepts/architecture.md) has the floors on which the packages stand.",
        "An import that follows from others is left out. Other packages may use the names in a room's `__all__`.",
    ]
    return "\n".join([*head, "", *chapters])


def _chapters_inside(package: str) -> list[str]:
    return [name for name in OWN_CHAPTER if name.startswith(f"{package}.")]


def _chapter(tree: Tree, package: str) -> str:
    arrows = room_arrows(tree, package)
    rows = [
        (f"`{_folder(tree, room)}/`", tree.summary(room), _imported(arrows, room, inside=f"{package}."))
        for room in _all_rooms(tree, package)
    ]
    head = [f"## {package}", "", f"`{_folder(tree, package)}/`: {tree.summary(package)}.", ""]
    return "\n".join([*head, table(("room", "what it is for", "imports"), rows), ""])


def _all_rooms(tree: Tree, package: str) -> list[str]:
    """Rooms of a package, recursively, except in those with a picture of their own."""
    return [
        name
        for room in tree.rooms(package)
        for name in (room, *([] if room in OWN_CHAPTER else _all_rooms(tree, room)))
    ]


def _folder(tree: Tree, package: str) -> str:
    return str(tree.files[package].parent.relative_to(ROOT))
