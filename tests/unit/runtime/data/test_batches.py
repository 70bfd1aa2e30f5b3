"""Batches: a pure function of seed, step, rank and microbatch; every sample once per epoch, in exact proportions."""

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast_runtime.data import (
    IGNORED,
    NO_END,
    DataError,
    Dataset,
    Mixture,
    Permutation,
    Source,
    TokenWriter,
    whole_weights,
)

CONTEXT = 8


def numbers(*values: int) -> Any:
    return np.array(values, dtype=np.uint64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files a, b and c; every token of them is another number, so that a token says where it comes from."""
    made = tmp_path_factory.mktemp("tokens")
    token = 0
    for name, lengths in {"a": [5, 30, 1, 12, 40], "b": [100], "c": [3] * 40}.items():
        with TokenWriter(made / name, vocabulary_size=1000, tokenizer="test", end_token=NO_END) as writer:
            for length in lengths:
                writer.add(np.arange(token, token + length))
                token += length
    return made


def dataset(folder: Path, **options: Any) -> Dataset:
    """Two sources, 11 + 13 and 15 samples per epoch, mixed 2 : 1."""
    sources = (Source("ab", (folder / "a", folder / "b"), 0.5), Source("c", (folder / "c",), 0.25))
    return Dataset(**{"sources": sources, "context": CONTEXT, "batch_size": 3, "world_size": 4, "seed": 7, **options})


@given(n=st.integers(1, 300), key=st.integers(), tweak=st.integers(0, 2**64 - 1))
def test_a_permutation_takes_each_place_once(n: int, key: int, tweak: int) -> None:
    order = Permutation(n, key)(np.arange(n, dtype=np.uint64), np.full(n, tweak, dtype=np.uint64))
    assert sorted(order.tolist()) == list(range(n))


@given(n=st.integers(2**30, 2**62), data=st.data())
def test_a_huge_permutation_stays_inside_and_keeps_numbers_apart(n: int, data: st.DataObject) -> None:
    some = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=2, max_size=20)))
    order = Permutation(n, "key")(numbers(*some), numbers(*[0] * len(some)))
    assert len(set(order.tolist())) == len(some)
    assert int(order.max()) < n


@pytest.mark.parametrize("n", [2, 3, 7, 10, 100])
def test_every_place_is_equally_likely(n: int) -> None:
    """Chi-squared over 20,000 orders, against five standard deviations above its mean."""
    orders = 20_000
    permutation = Permutation(n, "fair")
    tweaks = np.arange(orders, dtype=np.uint64)
    for index in {0, n // 2, n - 1}:
        counts = np.bincount(permutation(np.full(orders, index, dtype=np.uint64), tweaks).astype(int), minlength=n)
        statistic = float(((counts - orders / n) ** 2 / (orders / n)).sum())
        assert statistic < (n - 1) + 5 * (2 * (n - 1)) ** 0.5


def test_neighbours_do_not_stay_neighbours() -> None:
    n = 10_000
    order = Permutation(n, "seed")(np.arange(n, dtype=np.uint64), np.zeros(n, dtype=np.uint64)).astype(int)
    assert np.mean(np.abs(np.diff(order)) == 1) < 0.002
    assert abs(np.corrcoef(np.arange(n), order)[0, 1]) < 0.05


@given(weights=st.lists(st.integers(1, 20), min_size=1, max_size=5), blocks=st.integers(1, 4), start=st.integers(0, 50))
def test_each_block_of_a_mixture_has_the_exact_proportions_and_the_next_turns(
    weights: list[int], blocks: int, start: int
) -> None:
    mixture = Mixture([float(weight) for weight in weights], 3)
    draws = mixture.draws(np.arange(start * mixture.block, (start + blocks) * mixture.block, dtype=np.uint64))
    for source, weight in enumerate(mixture.weights):
        turns = sorted(draws.turns[draws.sources == source].tolist())
        assert turns == list(range(start * weight, (start + blocks) * weight))


@pytest.mark.parametrize(
    ("weights", "whole"),
    [([0.7, 0.2, 0.1], (7, 2, 1)), ([1, 1], (1, 1)), ([0.5, 0.25], (2, 1)), ([1e-3, 1], (1, 1000))],
)
def test_weights_are_exact_as_they_are_written(weights: list[float], whole: tuple[int, ...]) -> None:
    assert whole_weights(weights) == whole


@pytest.mark.parametrize("weights", [[], [0.0], [-1.0], [float("inf")], [float("nan")], [0.123456789, 0.5]])
def test_weights_that_cannot_be_exact_are_refused(weights: list[float]) -> None:
    with pytest.raises(DataError, match=r"weights must be positive|write them with fewer digits"):
        whole_weights(weights)


@settings(deadline=None)
@given(step=st.integers(0, 2**40 - 1), rank=st.integers(0, 3), before=st.integers(0, 100))
def test_a_batch_does_not_depend_on_what_was_read_before(folder: Path, step: int, rank: int, before: int) -> None:
    used, fresh = dataset(folder), dataset(folder)
    used.batch(before, 3 - rank)
    again, first = used.batch(step, rank), fresh.batch(step, rank)
    for name in ("tokens", "targets", "segments", "positions", "samples"):
        assert np.array_equal(getattr(again, name), getattr(first, name))


@settings(deadline=None)
@given(
    runs=st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from([1, 2, 3, 4, 6, 12]), st.sampled_from([1, 2]), st.integers(0, 3)),
        min_size=1,
        max_size=5,
    )
)
def test_each_sample_counts_once_whatever_the_world_sizes_and_resume_points(
    folder: Path, runs: list[tuple[int, int, int, int]]
) -> None:
    """
    G2. A run trains some steps at its world size, does work that is lost, and the next run goes on from the last
    committed step. What was committed is compared with one rank that was never disturbed.
    """
    committed: list[tuple[int, ...]] = []
    step = 0
    for steps, world_size, microbatches, lost in runs:
        data = dataset(
            folder, world_size=world_size, microbatches=microbatches, batch_size=24 // world_size // microbatches
        )
        for number in range(step, step + steps + lost):
            parts = [data.samples(number, rank, part) for rank in range(world_size) for part in range(microbatches)]
            if number < step + steps:
                committed += map(tuple, np.concatenate(parts).tolist())
        step += steps
    calm = dataset(folder, world_size=1, batch_size=24)
    assert committed == [tuple(row) for number in range(step) for row in calm.samples(number, 0).tolist()]
    counts = Counter(committed)
    assert max(counts.values()) == 1
    for source, size in ((0, 24), (1, 15)):
        epochs = Counter(epoch for which, epoch, _ in committed if which == source)
        assert all(epochs[epoch] == size for epoch in range(len(epochs) - 2)), "an epoch has all samples"


def test_an_epoch_predicts_each_token_once_and_never_across_documents(folder: Path) -> None:
    data = dataset(folder, sources=(Source("ab", (folder / "a", folder / "b")),), world_size=1, batch_size=24)
    batch = data.batch(0, 0)
    targets = batch.targets[batch.targets != IGNORED]
    begins = {0, 5, 35, 36, 48, 88}
    assert sorted(targets.tolist()) == [token for token in range(188) if token not in begins]
    rows, columns = np.nonzero(batch.targets != IGNORED)
    assert np.array_equal(batch.targets[rows, columns], batch.tokens[rows, columns] + 1)
    assert sorted(batch.samples[:, 2].tolist()) == list(range(24))


def test_segments_and_positions_follow_the_documents(folder: Path) -> None:
    data = dataset(folder, sources=(Source("a", (folder / "a",)),), world_size=1, batch_size=11)
    batch = data.batch(0, 0)
    order = np.argsort(batch.samples[:, 2])
    segments, positions = batch.segments[order], batch.positions[order]
    assert segments[0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert positions[0].tolist() == [0, 1, 2, 3, 4, 0, 1, 2]
    assert segments[4].tolist() == [0, 0, 0, 1, 2, 2, 2, 2]
    assert positions[4].tolist() == [0, 1, 2, 0, 0, 1, 2, 3]
    assert positions[5].tolist() == list(range(8)), "a document that began in the sequence before counts from its edge"


def test_a_short_end_is_padded_and_the_padding_is_no_part_of_a_document(tmp_path: Path) -> None:
    with TokenWriter(tmp_path / "a", vocabulary_size=100, tokenizer="test", end_token=NO_END) as writer:
        writer.add(range(1, 12))
    batch = Dataset(sources=[Source("a", [tmp_path / "a"])], context=8, batch_size=2, world_size=1).batch(0, 0)
    row = int(np.flatnonzero(batch.samples[:, 2] == 1)[0])
    assert batch.tokens[row].tolist() == [9, 10, 11, 0, 0, 0, 0, 0]
    assert batch.targets[row].tolist() == [10, 11] + [IGNORED] * 6
    assert batch.segments[row].tolist() == [0, 0, 0, 1, 1, 1, 1, 1]


def test_epochs_and_seeds_have_orders_of_their_own(folder: Path) -> None:
    options = {"sources": (Source("c", (folder / "c",)),), "world_size": 1, "batch_size": 15}
    first, second = (dataset(folder, **options).samples(step, 0)[:, 2].tolist() for step in (0, 1))
    other = dataset(folder, **options, seed=8).samples(0, 0)[:, 2].tolist()
    assert sorted(first) == sorted(second) == sorted(other) == list(range(15))
    assert first != second
    assert first != other


def test_epochs_are_counted_by_source(folder: Path) -> None:
    assert dataset(folder).epochs(3) == {"ab": pytest.approx(24 / 24), "c": pytest.approx(12 / 15)}


def test_a_far_step_takes_no_longer_than_the_first(folder: Path) -> None:
    data = dataset(folder)
    started = time.process_time()
    for step in range(20):
        data.batch(2**40 - 1 - step, 0)
    assert time.process_time() - started < 1.0


def test_state_of_other_data_is_refused(folder: Path) -> None:
    state = dataset(folder).state_dict()
    dataset(folder, world_size=2, batch_size=6).load_state_dict(state)
    for other in ({"seed": 8}, {"context": 9}, {"batch_size": 4}, {"sources": (Source("c", (folder / "c",)),)}):
        with pytest.raises(DataError, match="training state is of data"):
            dataset(folder, **other).load_state_dict(state)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": 0}, "context must be at least 1"),
        ({"sources": ()}, "weights must be positive"),
        ({"sources": (Source("a", ()),)}, "source a has no files"),
        ({"sources": (Source("a", ("x",)), Source("a", ("y",)))}, "different names"),
    ],
)
def test_what_does_not_fit_is_refused(folder: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        dataset(folder, **options)


@pytest.mark.parametrize("place", [(-1, 0, 0), (0, 4, 0), (0, -1, 0), (0, 0, 1)])
def test_a_batch_outside_the_run_is_refused(folder: Path, place: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="must be 0 to"):
        dataset(folder).batch(*place)


def test_tensors_share_the_memory_of_the_batch(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    batch = dataset(folder).batch(0, 0)
    tokens, targets = batch.torch()
    assert tokens.dtype == targets.dtype == torch.int64
    assert tokens.data_ptr() == batch.tokens.ctypes.data


@pytest.mark.parametrize("cut_to", [300, -8, -1])
def test_a_file_that_is_cut_short_while_it_is_in_use_is_an_error_and_not_zeros(cut_to: int, tmp_path: Path) -> None:
    path = tmp_path / "cut.tokens"
    with TokenWriter(path, vocabulary_size=100, tokenizer="none", end_token=NO_END) as writer:
        writer.add(numbers(*range(1, 33)))
    data = Dataset(sources=[Source("cut", [path])], context=4, batch_size=1, world_size=1)
    assert 0 not in data.batch(0, 0).tokens

    os.truncate(path, cut_to if cut_to > 0 else path.stat().st_size + cut_to)

    with pytest.raises(DataError, match="was cut short while it was in use: it has"):
        data.batch(1, 0)


def test_a_file_that_is_cut_short_while_a_batch_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cut.tokens"
    with TokenWriter(path, vocabulary_size=100, tokenizer="none", end_token=NO_END) as writer:
        writer.add(numbers(*range(1, 33)))
    data = Dataset(sources=[Source("cut", [path])], context=4, batch_size=1, world_size=1)
    searched = np.searchsorted

    def cut(*arguments: Any, **options: Any) -> Any:
        os.truncate(path, 300)
        return searched(*arguments, **options)

    monkeypatch.setattr(np, "searchsorted", cut)
    with pytest.raises(DataError, match="was cut short"):
        data.batch(0, 0)
