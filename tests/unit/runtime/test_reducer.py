"""The reducer and the vote: same bits as the plain sums, in an order that never changes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from killing import PYTHONPATH
from torch import nn

from holdfast_runtime import inprocess
from holdfast_runtime.groups import UnsupportedError
from holdfast_runtime.inprocess import Reducer, layout

ROOT = Path(__file__).parents[3]
WORLD = 3
Results = list[dict[str, Any]]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What each rank of a real group says; see reducer_program."""
    store = tmp_path_factory.mktemp("reducer") / "store"
    program = ROOT / "tests" / "support" / "reducer_program.py"
    processes = [
        subprocess.Popen(
            [sys.executable, str(program), str(rank), str(WORLD), str(store)],
            env={**os.environ, "PYTHONPATH": PYTHONPATH, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(WORLD)
    ]
    try:
        outputs = [process.communicate(timeout=60)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def test_gradients_have_the_bits_of_plain_sums_of_the_same_buckets(ranks: Results) -> None:
    found = {rank["reduced"]["gradients"] for rank in ranks} | {rank["plain"] for rank in ranks}
    assert len(found) == 1


def test_buckets_begin_in_their_order_while_backward_runs_and_the_last_one_waits(ranks: Results) -> None:
    for rank in ranks:
        assert rank["reduced"]["buckets"] == 3
        assert rank["reduced"]["order"] == [[0, True], [1, True], [2, False]]


def test_numbers_of_the_tail_are_added_up_with_the_last_bucket(ranks: Results) -> None:
    assert [rank["reduced"]["tail"] for rank in ranks] == [[WORLD, 0 + 1 + 2, 0, 2 * WORLD]] * WORLD


def test_several_backwards_are_one_reduction(ranks: Results) -> None:
    found = {rank["microbatches"]["gradients"] for rank in ranks} | {rank["plain microbatches"] for rank in ranks}
    assert len(found) == 1
    assert ranks[0]["microbatches"]["gradients"] != ranks[0]["reduced"]["gradients"]


def test_a_second_backward_that_was_not_announced_is_refused(ranks: Results) -> None:
    assert all("step.accumulate()" in rank["second"] for rank in ranks)


def test_a_parameter_that_no_rank_has_used_has_no_gradient_as_under_ddp(ranks: Results) -> None:
    mean = round(2 / WORLD, 3)
    assert [rank["partly used"] for rank in ranks] == [
        ["all: 4.0", f"last: {mean}", f"first part: {mean}", "none: None"] * 2
    ] * WORLD


def test_a_model_of_16_bits_votes_with_32(ranks: Results) -> None:
    assert [rank["half"]["tail"] for rank in ranks] == [[1.0 + 2.0 + 3.0] * 4] * WORLD
    assert len({rank["half"]["gradients"] for rank in ranks}) == 1


def test_what_comes_from_the_first_rank_is_the_same_on_all(ranks: Results) -> None:
    assert [rank["half"]["first"] for rank in ranks] == [[7, 7, 7]] * WORLD


def test_a_vote_over_real_ranks_sees_one_wrong_bit(ranks: Results) -> None:
    assert [rank["vote"] for rank in ranks] == [[WORLD, 1.0, True, True]] * WORLD
    assert [rank["different"] for rank in ranks] == [[WORLD, 1.0, True, False]] * WORLD


@given(st.lists(st.integers(1, 400), min_size=1, max_size=20), st.integers(4, 2000))
def test_the_layout_has_each_parameter_once_from_the_last_to_the_first(sizes: list[int], limit: int) -> None:
    parameters = [nn.Parameter(torch.zeros(size)) for size in sizes]
    buckets = layout(parameters, bucket_bytes=limit)
    assert [id(p) for bucket in buckets for p in bucket] == [id(p) for p in reversed(parameters)]
    assert all(len(bucket) == 1 or sum(p.numel() * 4 for p in bucket) <= limit for bucket in buckets)


def test_parameters_of_different_types_have_different_buckets() -> None:
    parameters = [nn.Parameter(torch.zeros(2, dtype=kind)) for kind in (torch.float32, torch.float64, torch.float64)]
    assert [len(bucket) for bucket in layout(parameters, bucket_bytes=1 << 20)] == [2, 1]


def test_alone_the_gradients_are_left_as_they_are() -> None:
    parameter = nn.Parameter(torch.ones(3))
    reducer = Reducer([parameter], tail=2)
    reducer.begin(world_size=1)
    (parameter * 2).sum().backward()
    (parameter * 2).sum().backward()
    reducer.finish()
    assert parameter.grad is not None
    assert parameter.grad.tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda parameter: nn.utils.clip_grad_norm_([parameter], 0.1), id="clipped"),
        pytest.param(lambda parameter: parameter.grad.mul_(0.5), id="scaled"),
        pytest.param(lambda parameter: setattr(parameter, "grad", parameter.grad * 0.5), id="replaced"),
        pytest.param(lambda parameter: setattr(parameter, "grad", None), id="removed"),
    ],
)
def test_gradients_that_the_program_changes_while_they_are_reduced_are_refused(change: Any) -> None:
    parameter = nn.Parameter(torch.ones(3))
    reducer = Reducer([parameter, nn.Parameter(torch.ones(1))], tail=2)
    reducer.begin(world_size=2)
    (parameter * 2).sum().backward()
    reducer.check_unchanged()

    change(parameter)

    with pytest.raises(UnsupportedError, match=r"call step.reduce\(loss\) after backward"):
        reducer.check_unchanged()
    reducer.begin(world_size=2)
    reducer.check_unchanged()


def test_a_frozen_parameter_is_left_alone() -> None:
    frozen = nn.Parameter(torch.ones(3), requires_grad=False)
    assert Reducer([frozen], tail=2).buckets == 0


def votes(*cast: tuple[int, int, float]) -> inprocess.Outcome:
    total = torch.zeros(inprocess.LENGTH)
    for step, digest, loss in cast:
        tail = torch.zeros(inprocess.LENGTH)
        inprocess.cast(tail, step=step, digest=digest, loss=loss)
        total += tail
    return inprocess.count(total, world_size=len(cast))


@given(st.integers(0, (1 << 24) - 1), st.integers(0, (1 << 32) - 1), st.integers(1, 64))
def test_equal_votes_agree(step: int, digest: int, ranks: int) -> None:
    outcome = votes(*[(step, digest, 1.0)] * ranks)
    assert (outcome.ready, outcome.same_step, outcome.same_digest) == (ranks, True, True)


@given(st.lists(st.tuples(st.integers(0, (1 << 24) - 1), st.integers(0, (1 << 32) - 1)), min_size=2, max_size=8))
def test_votes_agree_only_if_all_are_equal(cast: list[tuple[int, int]]) -> None:
    outcome = votes(*[(step, digest, 0.0) for step, digest in cast])
    assert outcome.same_step == (len({step for step, _ in cast}) == 1)
    assert outcome.same_digest == (len({digest for _, digest in cast}) == 1)


def test_a_loss_that_is_no_number_does_not_hide_that_ranks_agree() -> None:
    outcome = votes((5, 6, float("nan")), (5, 6, 1.0))
    assert outcome.same_step
    assert outcome.same_digest
    assert outcome.mean_loss != outcome.mean_loss


def test_a_rank_that_has_not_voted_is_missed() -> None:
    tail = torch.zeros(inprocess.LENGTH)
    inprocess.cast(tail, step=1, digest=2, loss=0.0)
    assert inprocess.count(tail, world_size=2).ready == 1
