"""Plain English: words that programs have no use for occur in no name, log line, message or help text."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COVERED = ("benchmarks", "constructs", "containers", "examples", "holdfast", "lifecycle", "scripts", "stacks")
WORDS = frozenset({
    "told", "tells", "telling", "said", "says", "saying", "nobody", "somebody", "whoever", "anew", "wanted", "wants",
    "hears", "knows", "believes",
})  # fmt: skip
"""Programs report, send, require and have; components have names; new things are new."""
EXCEPTIONS = {
    "constructs/holdfast_constructs/helm_installer/_helm.py: said": "part of a deployed asset",
    "constructs/holdfast_constructs/observability/alarms.py: tells": "templates that are deployed have it",
    "constructs/holdfast_constructs/observability/alarms.py: told": "the id of a metric in templates that are deployed",
    "containers/training/holdfast_runtime/inprocess/member/telling.py: telling": "a class, renamed with its folder",
    "containers/training/holdfast_runtime/witness/__main__.py: nobody": "the account",
    "holdfast/localcloud/hyperpod/slurm/daemons.py: wants": "a folder of systemd",
    "holdfast/localcloud/image/layers.py: wants": "a folder of systemd",
    "holdfast/localcloud/image/node/systemctl/boot.py: wants": "a folder of systemd",
    "holdfast/localcloud/image/node/systemctl/enable.py: wants": "a folder of systemd",
    "holdfast/localcloud/image/node/systemctl/manager.py: wants": "a setting and a folder of systemd",
    "holdfast/localcloud/image/node/systemctl/show.py: wants": "a setting of systemd",
    "holdfast/localcloud/image/node/systemctl/units/fstab.py: wants": "a folder of systemd",
    "holdfast/localcloud/image/services.py: wants": "a setting of systemd",
    "holdfast/localcloud/image/slurm.py: wants": "a setting of systemd",
    "holdfast/localcloud/kubernetes/images/node_root.py: nobody": "the account",
    "holdfast/localcloud/monitor/monitor.py: nobody": "the account",
    "lifecycle/holdfast_lifecycle/steps/lustre_efa.py: wants": "a setting of systemd",
}
"""By file and word, each with its reason; at most twenty."""
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
ANY = re.compile("|".join(WORDS))
WORD = re.compile(r"(?<![\w-])[a-z]+(?![\w-])")


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
    if not ANY.search(source.lower()):
        return []
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


@cache
def found() -> dict[str, list[int]]:
    """Lines by file and word."""
    lines: dict[str, list[int]] = {}
    for path in sorted(path for folder in COVERED for path in (ROOT / folder).rglob("*.py")):
        for line, word in unwanted_words(path.read_text()):
            lines.setdefault(f"{path.relative_to(ROOT).as_posix()}: {word}", []).append(line)
    return lines


def test_no_name_and_no_text_has_such_a_word() -> None:
    assert {place: lines for place, lines in found().items() if place not in EXCEPTIONS} == {}


def test_every_exception_is_needed_and_has_a_reason() -> None:
    assert EXCEPTIONS.keys() <= found().keys()
    assert len(EXCEPTIONS) <= 20
    assert all(EXCEPTIONS.values())
