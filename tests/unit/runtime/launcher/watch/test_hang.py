"""Why ranks have to leave, and which of them the message names."""

import pytest

from holdfast_runtime.patience import Limits, ProgressReport, hang

REPLICAS = Limits(waiting_s=120.0, working_s=600.0, recovering_s=360.0)
SHARDED = Limits(waiting_s=120.0, working_s=600.0, recovering_s=360.0, sharded=True)
IN_TIME = 119.0


def at(rank: int, phase: str, silent_s: float, *, step: int = 5, blocked: bool = False) -> ProgressReport:
    return ProgressReport(rank, step, phase, silent_s, blocked)


def test_ranks_within_their_limits_do_not_hang() -> None:
    assert hang([], limits=SHARDED, world_size=0) == ""
    reports = [at(0, "vote", IN_TIME), at(1, "forward", 599.0), at(2, "copy", 359.0), at(3, "other", 599.0)]
    assert hang(reports, limits=REPLICAS, world_size=4) == ""


@pytest.mark.parametrize("limits", [REPLICAS, SHARDED])
def test_the_rank_at_fault_is_the_one_that_the_others_wait_for(limits: Limits) -> None:
    found = hang([at(0, "vote", 121.0), at(1, "forward", 118.0), at(2, "vote", 120.5)], limits=limits, world_size=3)
    assert found == "rank 1 has made no progress for 118.0 s in phase forward of step 5; ranks [0, 2] wait"


def test_a_rank_that_has_not_begun_the_step_is_at_fault_and_not_those_in_its_collectives() -> None:
    reports = [at(0, "forward", 121.0), at(1, "other", 50.0), at(2, "forward", IN_TIME)]
    found = hang(reports, limits=SHARDED, world_size=3)
    assert found == "rank 1 has made no progress for 50.0 s in phase other of step 5; rank 0 waits"


def test_a_rank_that_is_alone_in_the_work_between_two_steps_is_at_fault() -> None:
    found = hang([at(0, "other", 600.5), at(1, "between", 601.0)], limits=SHARDED, world_size=2)
    assert found == "rank 0 has made no progress for 600.5 s in phase other of step 5; rank 1 waits"


def test_a_rank_that_is_a_step_behind_is_at_fault_whatever_its_phase() -> None:
    reports = [at(0, "forward", 130.0, step=6), at(1, "vote", 130.5, step=5)]
    found = hang(reports, limits=SHARDED, world_size=2)
    assert found.startswith("rank 1 has made no progress for 130.5 s in phase vote of step 5")


def test_where_all_ranks_are_in_one_phase_the_one_that_the_kernel_holds_is_at_fault() -> None:
    reports = [at(0, "forward", 121.0), at(1, "forward", 120.5, blocked=True)]
    found = hang(reports, limits=SHARDED, world_size=2)
    assert (
        found == "rank 1 has made no progress for 120.5 s in phase forward of step 5, held by the kernel; rank 0 waits"
    )


def test_where_nothing_tells_them_apart_no_rank_is_called_at_fault() -> None:
    found = hang([at(0, "forward", 121.0), at(1, "forward", 121.5)], limits=SHARDED, world_size=2)
    assert found == "one rank of the job hangs: ranks [0, 1] wait for it since 121.5 s in phase forward of step 5"


def test_ranks_that_all_wait_in_the_vote_wait_for_other_nodes() -> None:
    reports = [at(0, "vote", 121.0), at(1, "vote", 121.0)]
    found = hang(reports, limits=REPLICAS, world_size=4)
    assert found == "a rank of another node hangs: ranks [0, 1] wait for it since 121.0 s in phase vote of step 5"
    assert "another node" not in hang(reports, limits=REPLICAS, world_size=2)


def test_a_rank_that_hangs_in_a_recovery_is_named_and_not_those_that_have_recovered() -> None:
    found = hang([at(0, "other", 300.0), at(1, "copy", 361.0)], limits=SHARDED, world_size=2)
    assert found == "rank 1 has made no progress for 361.0 s in phase copy of step 5"
