"""
`holdfast up` is struck at each of its stages by `down`, SIGINT and SIGKILL, and the next `up` takes the home.

Each case stands alone, so that a run that was cut goes on with `pytest --stepwise`. The last test strikes at random
moments: HOLDFAST_STRIKES says how often (default: 3), HOLDFAST_SEED from which seed.
"""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from striking import STRIKES, Strike, full_cycle, up_begun

from holdfast.cli.deploying import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(900)]

ELSEWHERE = {
    Stage.SETTLE: "only after an `up` that was killed; the full cycle comes through it",
    Stage.ADMINISTRATORS: "only of EKS, and one call of IAM",
    Stage.KUBECTL: "only of EKS, and one file",
    Stage.MONITOR: "only with --monitor; its own restart is that of test_monitor",
}
STAGES = [stage for stage in Stage if stage not in ELSEWHERE]
Traces = Callable[[Path], set[str]]
LONGEST_IN_A_STAGE_S = 1.5
LONGEST_UP_S = 60.0


@pytest.mark.parametrize("how", STRIKES)
@pytest.mark.parametrize("stage", STAGES)
def test_the_next_up_takes_a_home_whatever_stage_was_struck(
    stage: Stage, how: Strike, product: Any, traces: Traces
) -> None:
    environment = str(product.environment(workers=1, spares=0))
    pause_s = random.Random(f"{stage} {how}").uniform(0.0, LONGEST_IN_A_STAGE_S)
    with up_begun(product, environment) as up:
        up.wait_for(stage)
        time.sleep(pause_s)
        up.strike(how)
    if how != "SIGKILL" and up.child.returncode != 0:
        assert up.child.returncode == 130, up.shown
        assert traces(product.home) == set()
        assert not product.home.exists()
    full_cycle(product, environment, traces=traces)


@pytest.mark.timeout(24 * 3600)
def test_strikes_at_random_moments_leave_a_home_that_the_next_up_takes(product: Any, traces: Traces) -> None:
    seed = int(os.environ.get("HOLDFAST_SEED", "2026"))
    chance = random.Random(seed)
    environment = str(product.environment(workers=1, spares=0))
    for number in range(int(os.environ.get("HOLDFAST_STRIKES", "3"))):
        how, moment_s, checked = chance.choice(STRIKES), chance.uniform(0.0, LONGEST_UP_S), chance.random() < 0.5
        print(f"seed {seed}, strike {number}: {how} after {moment_s:.2f} s")
        with up_begun(product, environment) as up:
            time.sleep(moment_s)
            up.strike(how)
        if checked:
            full_cycle(product, environment, traces=traces)
    full_cycle(product, environment, traces=traces)


def test_a_submit_in_the_middle_of_its_upload_ends_in_one_line_when_the_home_is_taken_down(
    product: Any, traces: Traces
) -> None:
    product.run("up", str(product.environment(workers=1, spares=0)))
    folder = product.work / "job"
    folder.mkdir()
    (folder / "job.sbatch").write_text("#!/bin/bash\nsleep 1\n")
    for number in range(40):
        (folder / f"{number}.bin").write_bytes(os.urandom(1 << 20))

    submit = product.popen("submit", str(folder / "job.sbatch"))
    time.sleep(1.0)
    done = product.run("down")
    _, said = submit.communicate(timeout=120)

    assert done.returncode == 0
    if submit.returncode != 0:
        assert said.startswith(f"holdfast: the local cloud in {product.home} was taken down")
        assert said.count("\n") == 1
    assert traces(product.home) == set()
    assert not product.home.exists()


def test_two_downs_at_once_take_it_down_once(product: Any) -> None:
    product.run("up", str(product.environment(workers=1, spares=0)))
    both = [product.popen("down") for _ in range(2)]
    ended = [(*child.communicate(timeout=300), child.returncode) for child in both]
    assert any(code == 0 for *_, code in ended)
    for _, said, code in ended:
        assert code == 0 or (said.startswith("holdfast: holdfast down (pid ") and said.count("\n") == 1)
    assert not product.home.exists()
