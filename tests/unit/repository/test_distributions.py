"""The wheels of docs/reference/distributions.md: each package is in one, and each asks for all that it imports."""

import functools
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import distributions as installed
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest
import tomllib
from clean_environment import closure, ours
from house import modules
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from distributions import distributions, folder_of, settings
from import_graph import imports_of

NEVER = {
    "holdfast-common": {"aws-cdk-lib", "boto3", "moto", "numpy", "pydantic", "pyyaml", "torch"},
    "holdfast-agent": {"aws-cdk-lib", "boto3", "moto", "numpy", "pydantic", "pyyaml", "torch"},
    "holdfast-operator": {"aws-cdk-lib", "boto3", "moto", "numpy", "pydantic", "pyyaml", "torch"},
    "holdfast-runtime": {"aws-cdk-lib", "boto3", "constructs", "moto", "pydantic", "pyyaml", "typer"},
    "holdfast-rules": {"aws-cdk-lib", "constructs", "moto", "torch", "typer"},
    "holdfast-constructs": {"moto", "torch", "typer", "werkzeug"},
    "holdfast-hyperpod": {"aws-cdk-lib", "constructs", "torch"},
}
"""What a wheel does without, and what it asks for does not bring along: that is what it is a wheel of its own for."""

OF_DEBIAN_12 = "3.11.2"
LAST_FOR_310 = {"numpy": "2.2.6", "transformers": "5.20.2"}
"""As PyPI has them: newer ones begin at Python 3.11."""


@functools.cache
def shipped() -> Mapping[str, str]:
    """The wheel that each module of ours is in; what is left out of wheels is not here."""
    left_out = [
        name.replace("/", ".").removesuffix(".py") for each in distributions().values() for name in each.left_out
    ]
    return {
        module: each.name
        for each in distributions().values()
        for module in modules()
        if any(f"{module}.".startswith(f"{package}.") for package in each.packages)
        and not any(f"{module}.".startswith(f"{name}.") for name in left_out)
    }


@functools.cache
def imported(wheel: str) -> Sequence[tuple[str, str]]:
    """What the modules of a wheel import when they run, at their top or later: who, and whom."""
    return [
        (module, one.module)
        for module, owner in shipped().items()
        if owner == wheel
        for one in imports_of(modules()[module], importer=module, modules=modules())
        if not one.typing
    ]


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_every_python_of_a_node_gets_each_package_of_an_example_once_and_as_the_runtime_asks(
    python: str, repository: Path
) -> None:
    (runtime,) = [each for each in distributions().values() if each.name == "holdfast-runtime"]
    asked = {each.name: each.specifier for each in map(Requirement, runtime.requires)}
    for file in (repository / "examples").glob("*/requirements*.txt"):
        lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
        meant = [
            each
            for each in map(Requirement, lines)
            if not each.marker or each.marker.evaluate({"python_version": python})
        ]
        assert sorted(each.name for each in meant) == sorted({Requirement(line).name for line in lines}), file
        for each in meant:
            pins = [one.version for one in each.specifier if one.operator == "=="]
            assert all(version in asked[each.name] for version in pins), f"{file}: {each}"
            if python == "3.10" and each.name in LAST_FOR_310:
                assert LAST_FOR_310[each.name] in each.specifier, f"{file}: {each}"


def test_no_package_is_in_two_wheels() -> None:
    owned = [name for each in distributions().values() for name in each.packages]

    assert len(owned) == len(set(owned))
    assert not [(one, two) for one in owned for two in owned if two.startswith(f"{one}.")]


@pytest.mark.parametrize("name", distributions())
def test_a_wheel_imports_what_is_in_it_and_in_those_of_ours_that_it_needs(name: str) -> None:
    needed = {name, *ours(name)}
    foreign = [
        f"{module}: {target}"
        for module, target in imported(name)
        if target.startswith("holdfast") and shipped().get(target) not in needed
    ]

    assert imported(name)
    assert foreign == []


@pytest.mark.parametrize("name", distributions())
def test_a_wheel_asks_for_the_packages_of_others_that_it_imports(name: str) -> None:
    wheels = [distributions()[each] for each in (name, *ours(name))]
    without = closure(each for wheel in wheels for each in wheel.requires)
    asked = without | closure(each for wheel in wheels for extra in wheel.extras.values() for each in extra)
    given = {top for top, names in packages_distributions().items() if asked & {*map(canonicalize_name, names)}}
    lacking = {
        f"{module}: {top}"
        for module, target in imported(name)
        if (top := target.partition(".")[0]) not in given | sys.stdlib_module_names and not top.startswith("holdfast")
    }

    assert sorted(lacking) == []
    assert without & NEVER[name] == set()


@pytest.mark.parametrize("name", distributions())
def test_a_range_has_the_pinned_version_in_it(name: str) -> None:
    for each in (*distributions()[name].requires, *sum(distributions()[name].extras.values(), ())):
        wanted = Requirement(each)
        if wanted.name not in distributions():
            assert wanted.specifier.contains(version(wanted.name)), f"{each}: here is {version(wanted.name)}"


@pytest.mark.parametrize("name", distributions())
def test_a_wheel_has_its_licence_its_description_and_its_pythons(name: str, repository: Path) -> None:
    project = tomllib.loads(distributions()[name].metadata())["project"]

    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE", "NOTICE"])
    assert f"SPDX-License-Identifier: {project['license']}" in (repository / "NOTICE").read_text()
    assert project["readme"]["text"].startswith(f"# {name}\n\n{project['description']}.")
    oldest = project["requires-python"].removeprefix(">=")
    pythons = [each for each in project["classifiers"] if each.startswith("Programming Language")]
    assert pythons[0] == f"Programming Language :: Python :: {oldest}"
    assert all((folder_of(each) / "py.typed").is_file() for each in distributions()[name].packages)


def test_a_wheel_names_the_site_only_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = distributions()["holdfast-rules"]

    assert "urls" not in tomllib.loads(wheel.metadata())["project"]
    monkeypatch.setitem(settings()["tool"]["holdfast"], "site-url", "https://docs.example.com/holdfast")
    urls = tomllib.loads(wheel.metadata())["project"]["urls"]
    assert urls == {"Documentation": "https://docs.example.com/holdfast"}


def test_the_commands_of_the_checkout_are_those_of_the_wheels() -> None:
    commands = [command for each in distributions().values() for command in each.scripts]

    assert sorted(commands) == ["holdfast", "holdfast-agent", "holdfast-run", "hyperpodrun"]
    assert {version(name) for name in distributions()} == {settings()["project"]["version"]}, "run: make setup"


def test_what_is_pinned_installs_with_the_python_of_debian_12() -> None:
    required = {each.name: each.metadata.get("Requires-Python") or "" for each in installed()}

    assert [name for name, python in required.items() if not SpecifierSet(python).contains(OF_DEBIAN_12)] == []
