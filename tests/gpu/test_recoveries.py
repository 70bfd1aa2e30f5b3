"""
Recipes on GPUs, with NCCL: ten recoveries in one job, every bit of a calm run, and nothing is left behind by any.

A rank that hangs has its peers in collectives that no closed connection ends: all communicators have to be aborted.
"""

import json
from pathlib import Path

import pytest
from gpus import needs
from killing import PATIENT, QUICK, ROOT, Job, Outcome, differences, run_job
from recipes import tokens
from sharded_jobs import PRELOADED

pytestmark = pytest.mark.timeout(1800)
STEPS = 60
TEN = tuple(
    {"kind": "SIGKILL", "phase": ("data", "update", "vote")[number % 3], "rank": 1, "step": 5 * (number + 1)}
    for number in range(10)
)
MIB = 1 << 20


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tokens(tmp_path_factory.mktemp("data") / "text.tokens")


def trained(folder: Path, recipe: str, data: Path, *, ranks: int, **how: object) -> Outcome:
    shape = {"deadlines": PATIENT, "arguments": ("--max-restarts", "20"), **how}
    program = ROOT / "tests" / "support" / "recipe_program.py"
    environment = {"RECIPE": f"{recipe} --steps {STEPS} --data {data}"}
    job = Job(
        steps=STEPS,
        ranks=ranks,
        program=program,
        torch=PRELOADED,
        timeout_s=900.0,
        environment=environment,
        **shape,  # type: ignore[arg-type]
    )
    return run_job(folder, job)


def held(outcome: Outcome, *, rank: int, step: int, what: str) -> int:
    """What a rank held when it committed a step for the last time."""
    lines = map(json.loads, (outcome.folder / f"rank{rank}.jsonl").read_text().splitlines())
    return int([line["held"][what] for line in lines if line["step"] == step][-1])


@pytest.mark.parametrize(
    ("recipe", "ranks"),
    [
        pytest.param("fsdp2.py --snapshot-every 2", 2, marks=needs(2)),
        pytest.param("hsdp.py", 4, marks=needs(4)),
        pytest.param("tp_dp.py --snapshot-every 2", 4, marks=needs(4)),
        pytest.param("pp_dp.py --snapshot-every 2", 4, marks=needs(4)),
    ],
)
def test_ten_recoveries_leave_nothing_behind(tmp_path: Path, data: Path, recipe: str, ranks: int) -> None:
    calm = trained(tmp_path / "calm", recipe, data, ranks=ranks, spares=0)
    outcome = trained(tmp_path / "kills", recipe, data, ranks=ranks, spares=1, faults=TEN)

    assert calm.finished, calm.text[-3000:]
    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == dict.fromkeys(range(10), 1)
    assert differences(outcome, calm) == []
    after_one, after_ten = STEPS // 6, STEPS - 1
    for what, room in (("gpu_bytes", 64 * MIB), ("files", 8), ("threads", 8)):
        grown = held(outcome, rank=0, step=after_ten, what=what) - held(outcome, rank=0, step=after_one, what=what)
        assert grown <= room, f"rank 0, which was there all the time, holds {grown} more of {what}"


@pytest.mark.parametrize(
    ("recipe", "ranks"),
    [
        pytest.param("fsdp2.py --snapshot-every 2", 2, marks=needs(2)),
        pytest.param("tp_dp.py --replicas 2", 4, marks=needs(4)),
    ],
)
def test_communicators_of_all_groups_are_aborted_when_a_rank_hangs_in_one(
    tmp_path: Path, data: Path, recipe: str, ranks: int
) -> None:
    """It stops inside backward, so others wait on their GPUs, some in groups that it is not in."""
    hang = {"kind": "SIGSTOP", "phase": "collective:3", "rank": 1, "step": 7}

    calm = trained(tmp_path / "calm", recipe, data, ranks=ranks, spares=0)
    outcome = trained(tmp_path / "hang", recipe, data, ranks=ranks, spares=1, faults=(hang,), deadlines=QUICK)

    assert calm.finished, calm.text[-3000:]
    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == {0: 1}
    assert differences(outcome, calm) == []
    assert "rank 0 has not left within" not in outcome.text, "a survivor was killed to get it out of its collective"
