"""minGPT's trainer, ported in nine lines, trains on bit for bit when a rank is killed. Needs a checkout of minGPT."""

import importlib.util
import os
import shutil
from pathlib import Path
from types import ModuleType

import pytest
from killing import Job, differences, run_job

CHECKOUT = os.environ.get("HOLDFAST_MINGPT", "")
STEPS = 12


@pytest.fixture
def port(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("port", repository / "examples" / "ported" / "port.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_port_is_of_ten_lines_or_fewer(port: ModuleType) -> None:
    assert 0 < port.changed_lines() <= 10


def test_another_file_is_refused(port: ModuleType) -> None:
    with pytest.raises(ValueError, match="check out that commit"):
        port.ported("while True:\n    pass\n")


@pytest.mark.skipif(not CHECKOUT, reason="needs a checkout of minGPT in HOLDFAST_MINGPT")
def test_the_ported_trainer_goes_on_bit_for_bit_when_ranks_are_killed(
    port: ModuleType, repository: Path, tmp_path: Path
) -> None:
    source = tmp_path / "minGPT"
    shutil.copytree(Path(CHECKOUT) / "mingpt", source / "mingpt")
    trainer = source / "mingpt" / "trainer.py"
    trainer.write_text(port.ported(trainer.read_text()))
    faults = tuple(
        {"kind": "SIGKILL", "phase": phase, "rank": rank, "step": step}
        for phase, rank, step in (("bucket:0", 2, 3), ("update", 0, 7))
    )
    paths = [source, repository / "containers" / "training", repository / "containers" / "common"]
    shape = {
        "program": repository / "examples" / "ported" / "sort.py",
        "environment": {"PYTHONPATH": os.pathsep.join(map(str, paths))},
        "steps": STEPS,
    }

    calm = run_job(tmp_path / "calm", Job(**shape))  # type: ignore[arg-type]
    outcome = run_job(tmp_path / "faults", Job(faults=faults, **shape))  # type: ignore[arg-type]

    assert calm.finished, calm.text[-2000:]
    assert outcome.fired == {0: 1, 1: 1}
    assert outcome.finished, outcome.text[-2000:]
    assert differences(outcome, calm) == []
