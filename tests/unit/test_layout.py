"""The folder ``constructs/`` has the name of a PyPI package that the CDK imports: docs/adr/0001."""

import importlib
from pathlib import Path

import pytest
import tomllib


def test_the_folder_constructs_holds_no_python_file_of_its_own(repository: Path) -> None:
    assert sorted(path.name for path in (repository / "constructs").glob("*.py")) == []


def test_import_constructs_finds_the_package_of_the_cdk(repository: Path) -> None:
    import constructs

    assert constructs.__file__ is not None
    assert repository / "constructs" not in Path(constructs.__file__).parents
    assert hasattr(constructs, "Construct")


def test_every_package_is_in_the_wheel(repository: Path) -> None:
    listed = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders, tops = listed["package-dir"], {name.partition(".")[0] for name in listed["packages"]}
    places = {folders.get(top, top): top for top in tops}
    found = {
        ".".join((name, *path.parent.relative_to(repository / place).parts))
        for place, name in places.items()
        for path in (repository / place).rglob("__init__.py")
    }

    assert sorted(found - set(listed["packages"])) == []


def test_no_test_folder_is_a_package(repository: Path) -> None:
    assert list((repository / "tests").rglob("__init__.py")) == []


@pytest.mark.parametrize("name", ["holdfast.catalog", "holdfast.config", "holdfast_constructs", "holdfast_stacks"])
def test_public_names_exist_and_are_sorted(name: str) -> None:
    package = importlib.import_module(name)
    upper = [item for item in package.__all__ if item.isupper()]

    assert package.__all__ == sorted(upper) + sorted(
        set(package.__all__) - set(upper), key=lambda n: (n[0].islower(), n)
    )
    assert all(hasattr(package, item) for item in package.__all__)
