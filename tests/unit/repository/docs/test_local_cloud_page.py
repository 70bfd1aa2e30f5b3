"""Each row of HyperPod's behaviour has a source or is "assumed"; a test asserts each sourced one."""

import ast
from pathlib import Path

import pytest

from local_tables import behaviours

TESTS = Path(__file__).parents[3]


def rows() -> dict[str, str]:
    """Id to source, in the order of the table."""
    listed = [(row["id"], row["source"]) for row in behaviours()]
    assert len(dict(listed)) == len(listed), "an id is there twice"
    return dict(listed)


def named_by(path: Path) -> dict[str, list[str]]:
    """Row to the test functions of one file that name it, by ``@pytest.mark.documented(...)`` alone."""
    found: dict[str, list[str]] = {}
    text = path.read_text()
    for node in ast.parse(text).body if "mark.documented" in text else ():
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.documented":
                    for argument in mark.args:
                        found.setdefault(ast.literal_eval(argument), []).append(f"{path.name}::{node.name}")
    return found


@pytest.fixture(scope="module")
def named() -> dict[str, list[str]]:
    """Row to the tests that assert it, of the whole tree."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for row, tests in named_by(path).items():
            found.setdefault(row, []).extend(tests)
    return found


def test_rows_are_numbered_in_order():
    assert list(rows()) == [f"HP-{number:02d}" for number in range(1, len(rows()) + 1)]


def test_each_row_has_a_source_or_says_why_it_is_assumed():
    for row, source in rows().items():
        assert len(source) >= 4, row
        assert not source.startswith("assumed") or source == "assumed" or source.startswith("assumed: "), row


def test_each_row_with_a_source_is_asserted_by_a_test(named: dict[str, list[str]]):
    sourced = {row for row, source in rows().items() if not source.startswith("assumed")}
    assert len(sourced) > 50
    assert sorted(sourced - named.keys()) == []


def test_no_test_names_a_row_that_is_not_there(named: dict[str, list[str]]):
    listed = rows()
    assert {row: tests for row, tests in named.items() if row not in listed} == {}


def test_a_deleted_test_is_missed(tmp_path: Path):
    path = tmp_path / "test_one.py"
    path.write_text('import pytest\n\n@pytest.mark.documented("HP-01", "HP-02")\ndef test_it():\n    pass\n')
    assert named_by(path) == {"HP-01": ["test_one.py::test_it"], "HP-02": ["test_one.py::test_it"]}
    path.write_text('import pytest\n\n@pytest.mark.documented("HP-01")\ndef helper():\n    pass\n')
    assert named_by(path) == {}
