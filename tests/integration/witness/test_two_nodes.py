"""A job of two nodes that loses one whole: with a witness it goes on with the same bits, without one it says why not."""

from pathlib import Path

import pytest
from killing import Job, Outcome, differences, run_job
from witnesses import witness

STEPS = 12
NODE_LOST = {"kind": "SIGKILL", "phase": "bucket:1", "rank": 1, "step": 4, "victims": ["launcher"]}
ROOTS_LOST = {**NODE_LOST, "rank": 0}

pytestmark = pytest.mark.timeout(110)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    outcome = run_job(tmp_path_factory.mktemp("calm"), Job(steps=STEPS, nodes=1, ranks=2, spares=0))
    assert outcome.finished, outcome.text[-3000:]
    return outcome


def two_nodes(folder: Path, *arguments: str, fault: dict[str, object], again: bool = False, spares: int = 1) -> Outcome:
    job = Job(
        steps=STEPS,
        nodes=2,
        ranks=1,
        spares=spares,
        faults=(fault,),
        arguments=arguments,
        restart_launchers=again,
        timeout_s=60.0,
    )
    return run_job(folder, job)


@pytest.mark.parametrize("fault", [NODE_LOST, ROOTS_LOST], ids=["the second node", "the first node"])
def test_with_a_witness_the_node_that_is_left_trains_on_to_the_same_bits(
    tmp_path: Path, calm: Outcome, fault: dict[str, object]
) -> None:
    with witness(tmp_path) as voter:
        outcome = two_nodes(tmp_path, "--witness", voter.address, fault=fault)

    assert outcome.fired == {0: 1}
    assert sorted(outcome.codes) == [-9, 0], outcome.text[-3000:]
    assert differences(outcome, calm) == []
    assert f"1 of 2 launchers may be lost, with the witness at 127.0.0.1 port {voter.port}" in outcome.text
    assert "0 of 2 launchers may be lost" in outcome.text


def test_without_one_the_job_stops_within_its_deadline_and_says_why(tmp_path: Path) -> None:
    outcome = two_nodes(tmp_path, fault=NODE_LOST)

    assert outcome.fired == {0: 1}
    assert sorted(outcome.codes) == [-9, 1], outcome.text[-3000:]
    assert "0 of 2 launchers may be lost; a witness would make it one more" in outcome.text
    few = "1 of 2 launchers that may vote and no witness are in reach, and 2 votes are needed"
    assert f"the job ends: node 1 is lost; {few}" in outcome.text


def test_without_a_spare_the_job_waits_for_the_node_to_come_back(tmp_path: Path, calm: Outcome) -> None:
    with witness(tmp_path) as voter:
        outcome = two_nodes(tmp_path, "--witness", voter.address, fault=NODE_LOST, again=True, spares=0)

    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == {0: 1}
    assert differences(outcome, calm) == []
