"""``make quick`` selects the unit tests of what a change touches."""

from pathlib import Path

import quick


def test_a_file_is_as_far_as_the_imports_between(tmp_path: Path) -> None:
    model, view, test, other = (tmp_path / name for name in ("model.py", "view.py", "test_view.py", "other.py"))

    found = quick.distances([model], {model: {view}, view: {test}, other: {test}})

    assert found == {model: 0, view: 1, test: 2}


def test_a_change_in_the_planner_selects_its_tests_and_none_of_the_agents(repository: Path) -> None:
    found = [path.parent.name for path in quick.touched([repository / "holdfast/planner/model/__init__.py"])]

    assert "planner" in found
    assert "agent" not in found


def test_a_changed_file_of_data_counts_for_the_package_that_it_lies_in(repository: Path) -> None:
    data = next((repository / "holdfast/catalog").rglob("*.json"))

    assert quick.package_of(data) in data.parents
    assert quick.touched([data])


def test_a_changed_test_is_selected(repository: Path) -> None:
    assert quick.touched([Path(__file__)]) == [Path(__file__)]


def test_a_changed_page_selects_the_tests_of_pages_alone(repository: Path) -> None:
    assert {path.parent.name for path in quick.touched([repository / "docs/concepts/gpu.md"])} == {"docs"}
