"""Plain English: words that programs have no use for occur in no name, log line, message or help text."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COVERED = (
    "benchmarks",
    "constructs",
    "containers/common",
    "containers/health-agent",
    "holdfast/catalog",
    "holdfast/cli",
    "holdfast/config",
    "holdfast/environments",
    "holdfast/importing",
    "holdfast/planner",
    "holdfast/updates",
    "holdfast/validation",
    "scripts",
    "stacks",
)
"""Folders, to be widened to all packages."""
WORDS = frozenset({
    "told", "tells", "telling", "said", "says", "saying", "nobody", "somebody", "whoever", "anew", "wanted", "wants",
    "hears", "knows", "believes",
})  # fmt: skip
"""Programs report, send, require and have; components have names; new things are new."""
EXCEPTIONS = {
    "constructs/holdfast_constructs/helm_installer/_helm.py: said": "part of a deployed asset",
    "constructs/holdfast_constructs/observability/alarms.py: told": "an id inside the template's metric math",
    "constructs/holdfast_constructs/observability/alarms.py: tells": "an alarm's description in the template",
}
"""By file and word, each with its reason; at most twenty."""
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
WORD = re.compile(r"(?<![\w-])[a-z]+(?![\w-])")


def files() -> list[Path]:
    return sorted(path for folder in COVERED for path in (ROOT / folder).rglob("*.py"))


def names_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names where they are defined."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def texts_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Strings, without docstrings and the like, which are expressions of their own."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value


def unwanted_words(source: str) -> list[tuple[int, str]]:
    """Line and word of each name and text that has one."""
    tree = ast.parse(source)
    words = [(line, part.lower()) for line, name in names_in(tree) for part in PART.findall(name)]
    words += [(line, word) for line, text in texts_in(tree) for word in WORD.findall(text.lower())]
    return sorted({(line, word) for line, word in words if word in WORDS})


@pytest.mark.parametrize(
    "source",
    [
        "def tell(): ...\ndef told(): ...",
        "class NobodyKnows: ...",
        "for wanted in (): ...",
        "self.says = 1",
        "def f(said): ...",
        "print('Nobody came')",
        'print(f"node {1} wants a job")',
    ],
)
def test_a_word_is_found_in_a_name_and_in_a_text(source: str) -> None:
    assert unwanted_words(source)


@pytest.mark.parametrize("source", ['"""Says it."""', 'x = 1\n"""What it says."""', "print('unwanted')", "a.told"])
def test_a_docstring_a_longer_word_and_a_name_of_others_are_none(source: str) -> None:
    assert unwanted_words(source) == []


def test_no_name_and_no_text_has_such_a_word() -> None:
    found = [
        f"{place}:{line}: {word}"
        for path in files()
        for line, word in unwanted_words(path.read_text())
        if f"{(place := path.relative_to(ROOT).as_posix())}: {word}" not in EXCEPTIONS
    ]
    assert found == []


def test_every_exception_is_needed_and_has_a_reason() -> None:
    found = ((path.relative_to(ROOT).as_posix(), unwanted_words(path.read_text())) for path in files())
    needed = {f"{path}: {word}" for path, words in found for _, word in words}
    assert EXCEPTIONS.keys() <= needed
    assert len(EXCEPTIONS) <= 20
    assert all(EXCEPTIONS.values())
