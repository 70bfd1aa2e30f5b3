"""Temporary files of programs that run as root: never in the folder that all users share."""

import ast

from house import modules

ROOTS = ("holdfast.localcloud", "holdfast_agent", "holdfast_common", "holdfast_lifecycle")
MAKERS = ("NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile", "mkdtemp", "mkstemp")


def test_each_temporary_file_of_root_names_its_folder() -> None:
    shared = [
        f"{name}:{node.lineno}"
        for name, path in modules().items()
        if f"{name}.".startswith(tuple(f"{root}." for root in ROOTS))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in MAKERS
        and "dir" not in {word.arg for word in node.keywords}
    ]
    assert shared == []
