"""
The own unit tests of runtime and agent under other Pythons, which HOLDFAST_PYTHONS names: paths with a colon between.

Each has pytest, pytest-timeout, pytest-xdist, hypothesis, numpy, xxhash and PyYAML. Files that need more, such as
PyTorch, are left out where that is not there, and so are those that need the product, which begins at Python 3.11.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from node_python import ENVIRONMENT

PYTHONS = [each for each in ENVIRONMENT.get("HOLDFAST_PYTHONS", "").split(os.pathsep) if each]
FOLDERS = ("common", "runtime", "agent")
OF_THE_PRODUCT = re.compile(r"^(from|import) (installed_charts|holdfast(\.|_constructs|_stacks| ))", re.MULTILINE)

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not PYTHONS, reason="HOLDFAST_PYTHONS names no Python"),
]


@pytest.mark.parametrize("python", PYTHONS)
def test_runtime_and_agent_pass_their_own_tests(python: str, repository: Path) -> None:
    tests = repository / "tests" / "unit"
    files = sorted(path for folder in FOLDERS for path in (tests / folder).rglob("test_*.py"))
    files = [path for path in files if not OF_THE_PRODUCT.search(path.read_text())]
    roots = ("", "containers/common", "containers/training", "containers/health-agent")
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", *files],
        cwd=repository,
        env={
            **ENVIRONMENT,
            "PYTHONPATH": os.pathsep.join(str(repository / root) for root in roots),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout[done.stdout.find("short test summary") :])
    raised = re.findall(r"^E   (\w+):", done.stdout, re.MULTILINE)
    assert re.search(r"^\d+ passed|, \d+ passed", done.stdout, re.MULTILINE), done.stdout + done.stderr
    assert [each for each in raised if each != "ModuleNotFoundError"] == [], done.stdout
    assert "FAILED" not in done.stdout, done.stdout
