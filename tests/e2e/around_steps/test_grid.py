"""
The grid: what an ordinary loop does around a step survives a loss with the calm run's bits, or the job names it.

Each part runs in a process of its own, which forks its jobs. Results stay in a file, so that a part that failed runs
again only what failed: ``python tests/e2e/around_steps/run.py --part 3/8 --results FILE`` is the same.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]
RUNNER = Path(__file__).with_name("run.py")
PARTS = 12
ROWS = {
    "attributes",
    "buffers",
    "data",
    "extra state",
    "gradients",
    "groups",
    "hooks",
    "later modules",
    "modes",
    "optimizer state",
    "parameters",
    "random states",
    "requires_grad",
    "scaler",
    "scheduler",
    "state=",
    "switches",
    "variables",
}


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of results: that of ``GRID_RESULTS``, which is read and added to, or a new one."""
    given = os.environ.get("GRID_RESULTS")
    return Path(given) if given else tmp_path_factory.mktemp("grid") / "results.jsonl"


def test_every_row_has_forms_and_every_form_that_is_not_the_programs_own_has_cells() -> None:
    listed = subprocess.run([sys.executable, RUNNER, "--list", "--json"], capture_output=True, text=True, check=True)
    forms = json.loads(listed.stdout)

    assert {form["row"] for form in forms.values()} == ROWS
    assert len(forms) >= 60
    assert [name for name, form in forms.items() if not form["cells"]] == []
    assert {form["row"] for form in forms.values() if form["verdict"] == "neither"} <= {"variables"}


@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_no_cell_is_silent_and_none_hangs(part: int, results: Path) -> None:
    command = [sys.executable, str(RUNNER), "--part", f"{part}/{PARTS}", "--results", str(results)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
