"""The folder ``constructs/`` has the name of a PyPI package that the CDK imports: docs/adr/0001."""

import ast
import importlib
from pathlib import Path

import pytest

from distributions import distributions, package_roots, settings


def test_the_folder_constructs_holds_no_python_file_of_its_own(repository: Path) -> None:
    assert sorted(path.name for path in (repository / "constructs").glob("*.py")) == []


def test_import_constructs_finds_the_package_of_the_cdk(repository: Path) -> None:
    import constructs

    assert constructs.__file__ is not None
    assert repository / "constructs" not in Path(constructs.__file__).parents
    assert hasattr(constructs, "Construct")


def test_every_package_is_in_one_wheel(repository: Path) -> None:
    owned = [name for each in distributions().values() for name in each.packages]
    found = {
        ".".join(path.parent.relative_to(root).parts)
        for root in package_roots()
        for path in (*root.glob("holdfast/*/__init__.py"), *root.glob("holdfast_*/__init__.py"))
    }

    assert sorted(owned) == sorted(found - {"holdfast_lifecycle"})
    assert not (repository / "holdfast/__init__.py").exists()


def test_what_repeats_the_package_roots_has_all_of_them() -> None:
    roots, tools = settings()["tool"]["holdfast"]["package-roots"], settings()["tool"]

    assert set(roots) <= set(tools["pytest"]["ini_options"]["pythonpath"])
    assert set(roots) <= set(tools["mypy"]["mypy_path"])
    assert set(roots) <= set(tools["ruff"]["src"])


def test_mypy_reads_the_modules_of_the_cdk_that_are_imported(repository: Path) -> None:
    sources = [
        repository / "app.py",
        *(file for root in ("constructs", "stacks") for file in repository.glob(f"{root}/**/*.py")),
    ]
    imported = {
        f"aws_cdk.{alias.name}" if node.module == "aws_cdk" else node.module
        for file in sources
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "aws_cdk"
        for alias in node.names
        if node.module != "aws_cdk" or alias.name.islower()
    }
    (read,) = [
        {*override["module"]}
        for override in settings()["tool"]["mypy"]["overrides"]
        if override.get("follow_imports") == "normal"
    ]

    assert read == {"aws_cdk", *imported}


def test_no_test_folder_is_a_package(repository: Path) -> None:
    tests = repository / "tests"

    # Other people's repositories among the cases are as they are.
    assert [path for path in tests.rglob("__init__.py") if tests / "cases" not in path.parents] == []


@pytest.mark.parametrize("name", ["holdfast.catalog", "holdfast.config", "holdfast_constructs", "holdfast_stacks"])
def test_public_names_exist_and_are_sorted(name: str) -> None:
    package = importlib.import_module(name)
    upper = [item for item in package.__all__ if item.isupper()]

    assert package.__all__ == sorted(upper) + sorted(
        set(package.__all__) - set(upper), key=lambda n: (n[0].islower(), n)
    )
    assert all(hasattr(package, item) for item in package.__all__)
