"""Each recipe of examples/recipes loses ranks, and goes on in place with every bit of a run that lost none."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from killing import PATIENT, PYTHONPATH, ROOT, Job, Outcome, differences, run_job
from recipes import RECIPES, tokens
from sharded_jobs import PRELOADED

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
PROGRAM = ROOT / "tests" / "support" / "recipe_program.py"
WITH_LIBRARIES = os.pathsep.join((PYTHONPATH, os.environ.get("PYTHONPATH", "")))
HUGGING_FACE = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("transformers", "peft"))),
    reason="needs what examples/recipes/requirements-hugging-face.txt names",
)
LIGHTNING = pytest.mark.skipif(
    importlib.util.find_spec("pytorch_lightning") is None, reason="needs what tests/requirements-torch.txt names"
)
STEPS = 8
KILLS = (
    {"kind": "SIGKILL", "phase": "data", "rank": 1, "step": 3},
    {"kind": "SIGKILL", "phase": "update", "rank": 2, "step": 5},
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tokens(tmp_path_factory.mktemp("data") / "text.tokens")


def trained(folder: Path, recipe: str, data: Path, **how: object) -> Outcome:
    shape = {"program": PROGRAM, "torch": PRELOADED, "deadlines": PATIENT, "timeout_s": 600.0, **how}
    environment = {"RECIPE": f"{recipe} --steps {STEPS} --data {data}", "PYTHONPATH": WITH_LIBRARIES}
    return run_job(folder, Job(steps=STEPS, environment=environment, **shape))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("recipe", "by_twins"),
    [
        ("fsdp2.py --snapshot-every 2", False),
        ("hsdp.py", True),
        ("elastic_fsdp2.py --snapshot-every 2", False),
        ("tp_dp.py --snapshot-every 2", False),
        ("tp_dp.py --replicas 2", True),
        ("pp_dp.py --snapshot-every 2", False),
        ("pp_dp.py --replicas 2", True),
        pytest.param("lightning_hsdp.py", True, marks=LIGHTNING),
        pytest.param("hugging_face.py --snapshot-every 2", False, marks=HUGGING_FACE),
        pytest.param("hugging_face.py --lora 4 --snapshot-every 2", False, marks=HUGGING_FACE),
        pytest.param("hugging_face.py --lora 4 --replicas 2", True, marks=HUGGING_FACE),
    ],
)
def test_a_recipe_that_loses_ranks_ends_as_one_that_loses_none(
    tmp_path: Path, data: Path, recipe: str, by_twins: bool
) -> None:
    calm = trained(tmp_path / "calm", recipe, data, spares=0)
    outcome = trained(tmp_path / "kills", recipe, data, faults=KILLS)

    assert calm.finished, calm.text[-3000:]
    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == {0: 1, 1: 1}
    assert sorted(calm.steps) == list(range(STEPS))
    assert differences(outcome, calm) == []
    assert not by_twins or "committed steps are done again" not in outcome.text


def test_what_may_be_lost_is_said_at_the_start(tmp_path: Path, data: Path) -> None:
    one = trained(tmp_path / "one", "fsdp2.py", data)
    two = trained(tmp_path / "two", "fsdp2.py --survive node", data, nodes=2, ranks=2)

    assert one.finished, one.text[-3000:]
    assert two.finished, two.text[-3000:]
    assert "state in memory: any one process may be lost, and no whole node: no other node has" in one.text
    assert "state in memory: any one node may be lost" in two.text


def test_a_job_that_could_not_lose_what_it_has_to_survive_does_not_begin(tmp_path: Path, data: Path) -> None:
    outcome = trained(tmp_path, "fsdp2.py --survive node", data)

    assert outcome.codes == (1,)
    assert "survive is 'node', but any one process may be lost" in outcome.text
    assert outcome.steps == {}


STORED = """
import sys
from pathlib import Path
import torch
from transformers import LlamaForCausalLM
from hugging_face import TINY
from holdfast_runtime.data import Dataset, Source
torch.manual_seed(3)
model = LlamaForCausalLM(TINY)
model.save_pretrained(sys.argv[1])
data = Dataset(sources=[Source("text", [sys.argv[2]])], context=16, batch_size=2, world_size=4, seed=1)
losses = []
for rank in range(4):
    inputs, targets = data.batch(0, rank).torch()
    losses.append(torch.nn.functional.cross_entropy(model(inputs).logits.flatten(0, 1), targets.flatten()).item())
print(sum(losses) / 4)
"""


@HUGGING_FACE
@pytest.mark.parametrize("flags", ["", " --lora 4"])
def test_a_model_in_a_folder_is_what_is_tuned(tmp_path: Path, data: Path, flags: str) -> None:
    made = subprocess.run(
        [sys.executable, "-c", STORED, tmp_path / "model", data],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(RECIPES), WITH_LIBRARIES))},
        check=True,
        capture_output=True,
        text=True,
    )

    outcome = trained(tmp_path / "job", f"hugging_face.py --model {tmp_path / 'model'}{flags}", data)

    assert outcome.finished, outcome.text[-3000:]
    assert float.fromhex(outcome.steps[0][0][0]) == pytest.approx(float(made.stdout.split()[-1]), rel=1e-5)


@LIGHTNING
def test_lightning_without_a_twin_does_not_begin_as_it_cannot_go_back(tmp_path: Path, data: Path) -> None:
    outcome = trained(tmp_path, "lightning_hsdp.py --replicas 1", data)

    assert outcome.codes == (1,)
    assert "survive is 'process', but no process may be lost without going back to a checkpoint" in outcome.text
    assert outcome.steps == {}


def test_the_elastic_recipe_loses_a_node_and_has_the_losses_of_all_four(tmp_path: Path, data: Path) -> None:
    """Parameters are divided otherwise then, so digests of ranks say nothing; tests/e2e/test_elastic_matrix.py does."""
    recipe = "elastic_fsdp2.py --snapshot-every 2"
    node = {"kind": "SIGKILL", "phase": "data", "rank": 2, "step": 5, "victims": ["launcher"]}
    how = {"nodes": 4, "ranks": 1, "spares": 0, "arguments": ("--sizes", "2,3,4")}

    calm = trained(tmp_path / "calm", recipe, data, **how)
    outcome = trained(tmp_path / "kill", recipe, data, faults=(node,), restart_launchers=False, **how)

    assert calm.finished, calm.text[-3000:]
    assert sorted(outcome.codes) == [-9, 0, 0, 0], outcome.text[-3000:]
    assert outcome.fired == {0: 1}
    losses = [{loss for loss, _ in each.steps[number].values()} for each in (calm, outcome) for number in range(STEPS)]
    assert losses[:STEPS] == losses[STEPS:]
    assert all(len(each) == 1 for each in losses)
