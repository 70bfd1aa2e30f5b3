"""Each pair of four ranks of one node lost at once: fatal only where the two keep each other's snapshots."""

from itertools import combinations
from pathlib import Path

import pytest
from killing import Outcome, differences, run_job
from sharded_jobs import sharded

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
STEPS = 9
KEEP_EACH_OTHERS = ((0, 1), (2, 3))


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    outcome = run_job(tmp_path_factory.mktemp("calm"), sharded("shard4", steps=STEPS, spares=0))
    assert outcome.finished, outcome.text[-3000:]
    return outcome


@pytest.mark.parametrize("pair", [*combinations(range(4), 2)])
def test_two_of_six_pairs_of_one_node_are_fatal_and_after_the_others_every_bit_is_that_of_a_calm_run(
    tmp_path: Path, pair: tuple[int, int], calm: Outcome
) -> None:
    one, other = pair
    both = {"kind": "SIGKILL", "phase": "vote", "rank": one, "step": 5, "victims": ["self", f"rank:{other}"]}

    outcome = run_job(tmp_path, sharded("shard4", steps=STEPS, every=2, spares=2, faults=(both,)))

    assert outcome.fired == {0: 1}
    if pair in KEEP_EACH_OTHERS:
        assert outcome.codes == (1,)
        assert f"ranks {one}, {other} are lost, and no process has the state of ranks {one}, {other}" in outcome.text
    else:
        assert outcome.finished, outcome.text[-3000:]
        assert differences(outcome, calm) == []
