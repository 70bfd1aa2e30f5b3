"""The fields of the judged model: rules, readers and mypy mean the same ones."""

import ast
import inspect
from dataclasses import fields
from pathlib import Path

import pytest

from holdfast.config.reading import read
from holdfast.validation import Item, rules
from holdfast.validation.from_environment import deployment_in
from holdfast.validation.model import Choice

ROOT = Path(__file__).parents[3]
RULES = sorted(Path(rules.__file__).parent.rglob("*.py"))
ENVIRONMENTS = sorted((ROOT / "environments").glob("*.yaml"))


def kinds(kind: type[Item] = Item) -> set[type[Item]]:
    return {kind}.union(*(kinds(each) for each in kind.__subclasses__()))


def test_a_misspelt_field_is_an_error_of_the_type_checker() -> None:
    """A class with ``__getattribute__`` has every attribute, to mypy; so mypy must not see that of items."""
    (definition,) = (
        node
        for node in ast.parse(Path(inspect.getfile(Item)).read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "Item"
    )
    hidden = [node for node in definition.body if isinstance(node, ast.If)]
    shown = [node.name for node in definition.body if isinstance(node, ast.FunctionDef)]

    assert [ast.unparse(node.test) for node in hidden] == ["not TYPE_CHECKING"]
    assert not {"__getattribute__", "__getattr__"} & set(shown)


def test_a_rule_asks_for_the_place_of_fields_that_there_are() -> None:
    names = {field.name for kind in kinds() for field in fields(kind)}
    asked = {
        (f"{path.parent.name}/{path.stem}", call.args[0].value)
        for path in RULES
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("at", "knows")
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }

    assert {(file, name) for file, name in asked if name not in names} == set()


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_places_of_an_environment_file_are_those_of_fields(path: Path) -> None:
    for item in deployment_in(read(path), folder=path.parent).walk():
        if isinstance(item, Item) and not isinstance(item, Choice):  # whose places are those of settings
            assert set(item.places) <= {field.name for field in fields(item)}, item
