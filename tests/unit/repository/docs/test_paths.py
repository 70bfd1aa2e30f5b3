"""What the documents name is there: links, paths of this repository, modules, tests."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from house import make_targets

ROOT = Path(__file__).parents[4]
PAGES = [
    *(path for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md") for path in [ROOT / name]),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("README.md")),
]
TOPS = {"benchmarks", "constructs", "containers", "docs", "environments", "examples", "holdfast", "lifecycle"}
TOPS |= {"scripts", "stacks", "tests"}
PAGES += [path for name in sorted(TOPS - {"docs"}) for path in [ROOT / name / "README.md"] if path.is_file()]
FOLDERS = [ROOT, *(ROOT / name for name in ("constructs", "stacks", "lifecycle")), *(ROOT / "containers").iterdir()]
PATTERNS = {"docs/adr/NNNN-title.md"}
"""What a reader puts a name into."""
OUTSIDE = [page for page in PAGES if not page.is_relative_to(ROOT / "docs")]
"""Links of the others are checked by the site's build."""


def mentions(page: Path) -> Iterator[str]:
    """Each word of code in a page's prose and tables."""
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for line in prose.splitlines():
        for code in re.findall(r"`([^`]+)`", line):
            yield from code.split()


@cache
def names_of_tests() -> frozenset[str]:
    paths = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "tests" / "support").glob("*.py")]
    defined = (name for path in paths for name in re.findall(r"def (test_\w+)", path.read_text()))
    return frozenset([*defined, *(path.name for path in paths), *(path.stem for path in paths)])


def is_there(path: str) -> bool:
    return (ROOT / path).exists() or ("*" in path and any(ROOT.glob(path)))


def is_a_module(name: str) -> bool:
    """A package, a module of one, or what its file mentions."""
    parts = name.split(".")
    for home in FOLDERS:
        for end in range(len(parts), 0, -1):
            path = home.joinpath(*parts[:end])
            file = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
            if file.is_file() and end > len(parts) - 2:
                return end == len(parts) or re.search(rf"\b{parts[end]}\b", file.read_text()) is not None
    return False


def gone(word: str) -> Iterator[str]:
    """What a word of code names and does not exist."""
    path, _, test = word.rstrip(",.;").partition("::")
    if path in PATTERNS:
        return
    if re.fullmatch(r"[\w./*-]+", path) and path.split("/")[0] in TOPS and "/" in path and not is_there(path):
        yield path
    if re.fullmatch(r"holdfast(_[a-z]+)?(\.\w+)+", path) and not is_a_module(path):
        yield path
    yield from (
        name for name in (test, path) if re.fullmatch(r"test_\w+(\.py)?", name) and name not in names_of_tests()
    )


def test_what_a_page_names_is_there() -> None:
    missing = {str(page.relative_to(ROOT)): [each for word in mentions(page) for each in gone(word)] for page in PAGES}

    assert {page: names for page, names in missing.items() if names} == {}, "name what exists"


def test_each_top_folder_has_a_page() -> None:
    without = {name for name in TOPS if not any((ROOT / name / page).is_file() for page in ("README.md", "index.md"))}

    assert without == set()


def test_a_link_of_a_page_outside_the_site_leads_to_a_file_and_its_heading() -> None:
    broken = []
    for page in OUTSIDE:
        for link, anchor in re.findall(r"\]\((?![a-z]+:)([^)#\s]*)#?([^)]*)\)", page.read_text()):
            target = page.parent / link if link else page
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE) if target.is_file() else []
            anchors = {"", *(re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings)}
            if not target.exists() or anchor not in anchors:
                broken.append(f"{page.relative_to(ROOT)}: {link}#{anchor}")

    assert broken == []


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    written = (ROOT / "docs" / "zensical.toml").read_text()
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "adr"]

    assert [str(page) for page in pages if f'"{page}"' not in written] == []


def test_private_names_of_files_are_not_in_the_pages() -> None:
    named = {word for page in PAGES for word in mentions(page) if re.search(r"(^|/)_[a-z]\w*\.py$", word)}

    assert named == set(), "files have plain names; a room's __init__ says what it gives"


def test_every_target_of_make_that_a_page_names_is_one() -> None:
    named = {name for page in PAGES for name in re.findall(r"`make ([a-z][a-z0-9-]*)", page.read_text())}

    assert named - make_targets() == set()


def test_contributing_says_which_command_writes_a_page() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text()
    written = [
        path for path in PAGES if path.parent.name != "adr" and re.search(r"<!-- [Ww]ritten by", path.read_text())
    ]

    assert [path.name for path in written if f"{path.relative_to(ROOT)}`" not in table] == []
