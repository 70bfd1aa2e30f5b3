"""``holdfast rehearse`` of the elastic recipe on the local Slurm: two nodes are taken, given back, and it trains on."""

import json
from typing import Any

import pytest
from elastic_recipe import PREPARE, RECIPES, events, sizes, steps

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(1800)]
STEPS = 100
WITHIN_S = 1200
"""On a full machine a step of four ranks takes some seconds."""


def test_two_nodes_are_taken_and_given_back_and_the_summary_says_so(product: Any) -> None:
    product.run("up", str(product.environment(spares=0)))
    child = product.popen("rehearse", str(RECIPES / "elastic.sbatch"), "--prepare", str(PREPARE))
    try:
        out, err = child.communicate(timeout=WITHIN_S)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0, out + err

    (job,) = [row["job_id"] for row in json.loads(product.run("jobs", "--json").stdout)][:1]
    number = job.partition("_")[0]
    told = events(product, number)
    assert sizes(told)[-3:] == [4, 2, 4]
    resized = [one["detail"] for one in told if one["kind"] == "job_resized"]
    shrunk, grown = (one["step"] for one in resized[-2:])
    assert all(one["planned"] for one in resized)
    said = " ".join((out + err).split())
    assert "take 2 nodes of the job" in said
    assert "give them back" in said
    assert f"2 from step {shrunk}, 4 from step {grown}" in said
    assert f"finished after {STEPS} steps" in said
    assert ", 0 steps redone" in said
    assert not any(one["kind"] in ("rank_lost", "launcher_lost") for one in told)
    logs = [*product.home.glob(f"fsx/*/checkpoints/recipe-{number}/*.log")]
    printed = [line for log in logs for line in log.read_text().splitlines()]
    assert steps(printed) == list(range(STEPS)), "each step is made once"
