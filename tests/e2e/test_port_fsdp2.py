"""torch's own FSDP2 example, ported in a few lines, trains on bit for bit when ranks are killed. Needs a checkout."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
from killing import PATIENT, ROOT, Job, Outcome, differences, run_job
from sharded_jobs import PRELOADED

CHECKOUT = os.environ.get("HOLDFAST_TORCH_EXAMPLES", "")
STEPS = 10
KILLS = (
    {"kind": "SIGKILL", "phase": "data", "rank": 2, "step": 4},
    {"kind": "SIGKILL", "phase": "update", "rank": 1, "step": 7},
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    folder = ROOT / "examples" / "ported"
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("port_fsdp2", folder / "port_fsdp2.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop("port", None)
    return module


def test_the_port_is_of_fifteen_lines_or_fewer(port: ModuleType) -> None:
    assert 0 < port.changed_lines(port.EDITS) <= 15


@pytest.mark.skipif(not CHECKOUT, reason="needs a checkout of pytorch/examples in HOLDFAST_TORCH_EXAMPLES")
def test_the_ported_example_goes_on_bit_for_bit_when_ranks_are_killed(port: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "FSDP2"
    shutil.copytree(Path(CHECKOUT) / "distributed" / "FSDP2", folder)
    example = folder / "example.py"
    example.write_text(port.ported(example.read_text(), sha256=port.SHA256, edits=port.EDITS))

    def trained(name: str, **how: object) -> Outcome:
        shape = {"program": ROOT / "tests" / "support" / "recipe_program.py", "torch": PRELOADED, **how}
        environment = {"RECIPE": str(example), "FILLED": "0.01"}
        job = Job(steps=STEPS, deadlines=PATIENT, timeout_s=600.0, environment=environment, **shape)  # type: ignore[arg-type]
        return run_job(tmp_path / name, job)

    calm, outcome = trained("calm", spares=0), trained("kills", faults=KILLS)

    assert calm.finished, calm.text[-3000:]
    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == {0: 1, 1: 1}
    assert sorted(calm.steps) == list(range(STEPS))
    assert differences(outcome, calm) == []
