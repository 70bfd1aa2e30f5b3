"""
Public names and their signatures: ``scripts/public_api.py`` writes docs/public-api.txt.

Read from the source by griffe, so nothing is imported. A test compares the file with the source: a name that goes, or
is called in another way, stands in a change's diff, and needs a line in CHANGELOG.md.
"""

from collections.abc import Iterator

import griffe

from distributions import ROOT, package_roots

FILE = ROOT / "docs" / "public-api.txt"
PACKAGES = (
    "holdfast.catalog",
    "holdfast.config",
    "holdfast.importing",
    "holdfast.planner",
    "holdfast.updates",
    "holdfast.validation",
    "holdfast_common",
    "holdfast_constructs",
    "holdfast_runtime",
    "holdfast_runtime.lightning",
    "holdfast_stacks",
)
"""What these list in ``__all__`` is public, and so are the public members of a class in it; rooms inside are not."""


def text() -> str:
    loader = griffe.GriffeLoader(search_paths=[*package_roots()], allow_inspection=False)
    for name in sorted({name.partition(".")[0] for name in PACKAGES}):
        loader.load(name, submodules=True)
    loader.resolve_aliases(implicit=False, external=False)
    lines = {line for name in PACKAGES for line in _package(loader.modules_collection[name])}
    return "".join(f"{line}\n" for line in sorted(lines))


def _package(package: griffe.Object | griffe.Alias) -> Iterator[str]:
    for name in package.exports or ():
        yield from _lines(f"{package.path}.{name}", package.members[str(name)])


def _lines(path: str, member: griffe.Object | griffe.Alias) -> Iterator[str]:
    try:
        target = member.final_target if isinstance(member, griffe.Alias) else member
    except griffe.AliasResolutionError:  # one of several that an assignment names, or of another's package
        yield path
        return
    if isinstance(target, griffe.Function):
        yield f"{path}{target.signature().removeprefix(target.name)}"
    elif isinstance(target, griffe.Class):
        yield f"{path}({', '.join(str(base) for base in target.bases)})"
        for name, inner in sorted(target.members.items()):
            if name == "__init__" or not name.startswith("_"):
                yield from _lines(f"{path}.{name}", inner)
    elif isinstance(target, griffe.Attribute):
        yield f"{path}: {target.annotation}" if target.annotation is not None else path
    else:
        yield path


if __name__ == "__main__":
    FILE.write_text(text())
