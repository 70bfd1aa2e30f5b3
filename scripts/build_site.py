"""
Build the documentation site: ``scripts/build_site.py``, or ``make docs``. Warnings are errors.

Pages are copied from docs/ to build/docs/pages, and what follows from the code is written beside them. Works without
git and without a network.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import package_tables
import page_tables
from distributions import ROOT, package_roots, site_url
from holdfast.catalog.refresh import page_text
from holdfast.config.pages import reference_text
from holdfast.updates import updates_text
from holdfast.validation.pages import pages

DOCS = ROOT / "docs"
WORK = ROOT / "build" / "docs"
TABLE = re.compile(r"<!-- table: (\S+) -->")
LINK = re.compile(r"\[([^]]*)\]\((?![a-z]+:)([^)#\s]+)(#[^)]*)?\)")


class SiteError(Exception):
    """A page that cannot be built; the message has every problem."""


def main() -> None:
    try:
        build()
    except SiteError as error:
        sys.exit(str(error))
    print(WORK / "site" / "index.html")


def build(*, docs: Path = DOCS, work: Path = WORK, generated: Mapping[str, str] | None = None) -> None:
    """
    Build the site of ``docs`` into ``work/site``.

    Args:
        generated: Pages by their place in ``docs``. Default: those that follow from the code.

    Raises:
        SiteError: a link, an anchor, a table or a code reference is broken.
    """
    shutil.rmtree(work, ignore_errors=True)
    write_pages(docs=docs, target=work / "pages", generated=generated_pages() if generated is None else generated)
    settings = (work / "pages" / "zensical.toml").rename(work / "zensical.toml")
    if url := site_url():
        settings.write_text(settings.read_text().replace("[project]\n", f'[project]\nsite_url = "{url}"\n', 1))
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(work / "zensical.toml")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, package_roots()))}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SiteError(re.sub(r"\x1b\[[\d;]*m", "", f"{done.stdout}{done.stderr}").partition("Traceback")[0])


def write_pages(*, docs: Path, target: Path, generated: Mapping[str, str]) -> None:
    """
    Copy the pages of ``docs``, with their tables, and write the generated pages beside them.

    Raises:
        SiteError: an unknown table, or a link to a file that does not exist.
    """
    shutil.copytree(docs, target)
    for name, text in generated.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)
    tables = page_tables.tables()
    problems = [problem for page in sorted(docs.rglob("*.md")) for problem in _finish(page, docs, target, tables)]
    if problems:
        raise SiteError("\n".join(problems))


def generated_pages() -> Mapping[str, str]:
    return {
        "reference/environment.md": reference_text(),
        "reference/updates.md": updates_text(),
        "reference/facts.md": page_text(),
        "reference/rooms.md": package_tables.rooms_page(package_tables.read_tree()),
        **{f"reference/findings/{name}": text for name, text in pages().items()},
    }


def _finish(page: Path, docs: Path, target: Path, tables: Mapping[str, str]) -> Iterator[str]:
    """Write the copy of a page with its tables; a link out of docs becomes the path that it leads to."""
    text = page.read_text()
    place = target / page.relative_to(docs)
    yield from (
        f"{page}: got table {name!r}; allowed: {', '.join(tables)}"
        for name in TABLE.findall(text)
        if name not in tables
    )
    for _, link, _ in LINK.findall(text):
        inside = (place.parent / link).resolve()
        if not inside.is_relative_to(target.resolve()):
            inside = (page.parent / link).resolve()
        if not inside.exists():
            yield f"{page}: got a link to {link}; allowed: a file that exists"
    text = TABLE.sub(lambda found: tables.get(found[1], ""), text)
    place.write_text(LINK.sub(lambda found: _as_path(found, page, docs), text))


def _as_path(found: "re.Match[str]", page: Path, docs: Path) -> str:
    path = (page.parent / found[2]).resolve()
    if path.is_relative_to(docs.resolve()):
        return found[0]
    named = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    words = found[1].strip("`")
    return f"`{named}`" if words in str(named) else f"{found[1]} (`{named}`)"


if __name__ == "__main__":
    main()
