"""How packages are laid out: rooms of a dozen files, entered by their faces, in no circle."""

import ast
import importlib
from collections import defaultdict

from house import circle, imports, modules, offered, package_of, packages

from distributions import ROOT

MOST_FILES = 15
LAMBDA_CODE = "holdfast_constructs.helm_installer"
"""The names and bytes of its files are hashed into templates, its face too: files are tested by their own names."""


def test_nobody_imports_past_the_face_of_a_room() -> None:
    past = [
        f"{one.file.relative_to(ROOT)}:{one.line}: {one.module}"
        for one in imports()
        if one.module not in packages()
        and (room := package_of(one.module)) != LAMBDA_CODE
        and not f"{package_of(one.importer) if one.importer else ''}.".startswith(f"{room}.")
        and one.module.rpartition(".")[2] not in (offered(room) or ())
    ]
    assert past == []


def test_no_file_imports_itself_by_way_of_others() -> None:
    arrows: dict[str, set[str]] = defaultdict(set)
    for one in imports():
        if one.importer and one.module not in packages():
            arrows[one.importer].add(one.module)
    assert circle(arrows) == []


def test_rooms_are_in_no_circle() -> None:
    arrows: dict[str, set[str]] = defaultdict(set)
    for one in imports():
        here, there = package_of(one.importer) if one.importer else "", package_of(one.module)
        if here and not f"{here}.".startswith(f"{there}.") and not f"{there}.".startswith(f"{here}."):
            arrows[here].add(there)
    assert circle(arrows) == []


def test_a_room_has_a_dozen_files() -> None:
    files: dict[str, int] = defaultdict(int)
    for name in modules():
        files[package_of(name)] += 1
    assert {name: count for name, count in files.items() if count > MOST_FILES} == {}


def test_every_room_says_what_it_is_for() -> None:
    mute = [name for name in packages() if not ast.get_docstring(ast.parse(modules()[name].read_text()))]
    assert mute == []


def test_a_face_lists_what_it_offers() -> None:
    for name in sorted(packages()):
        tree = ast.parse(modules()[name].read_text())
        listed = offered(name) or ()
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        brought = {
            alias.asname or alias.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            and (node.level or (node.module or "").split(".")[0] == name.split(".")[0])
            for alias in node.names
            if f"{node.module}.{alias.name}" not in modules()
        }

        assert sorted(brought - set(listed) - used) == [], name
        assert len(listed) == len(set(listed)), name
        if name != LAMBDA_CODE and listed:
            package = importlib.import_module(name)
            for item in listed:
                assert hasattr(package, item) or importlib.import_module(f"{name}.{item}")
