"""Data files of packages that the rules depend on. None is imported: cfn-lint would take a second."""

import importlib.util
import json
from pathlib import Path
from typing import Any


def folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed"
    assert spec.submodule_search_locations is not None, f"{package} is a module without data"
    return Path(spec.submodule_search_locations[0])


def of_cfn_lint(path: str) -> Any:
    """Content of a JSON file of cfn-lint."""
    return json.loads((folder_of("cfnlint") / "data" / path).read_text())
