"""A data loader whose batches are a function of seed, epoch, rank and number, so that a newcomer begins with any."""

from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, RandomSampler, SequentialSampler

Position = Callable[[], tuple[int, int]]
"""Epoch, and batches of it that are trained on."""


class RankSampler(DistributedSampler[Any]):
    """The samples of one rank, the first time from a later one than the first."""

    begin_at = 0

    def __iter__(self) -> Iterator[Any]:
        begin_at, self.begin_at = self.begin_at, 0
        return iter([*super().__iter__()][begin_at:])


class RankLoader(DataLoader[Any]):
    """
    A rank's part of what another loader loads.

    Args:
        loader: Over a dataset with a length, in order or shuffled.
        position: Of the training that the loader is for.

    Raises:
        ValueError: the order of the loader is its own, so no other process can repeat it.
    """

    def __init__(self, loader: DataLoader[Any], *, rank: int, world_size: int, seed: int, position: Position) -> None:
        if type(loader.sampler) not in (RandomSampler, SequentialSampler) or loader.batch_size is None:
            kind = type(loader.sampler if loader.batch_size is not None else loader.batch_sampler).__name__
            raise ValueError(
                f"the data loader has a {kind}; allowed: shuffle=True or shuffle=False and a batch_size, so that each "
                "rank can be given its part, or an IterableDataset that divides itself"
            )
        self._position = position
        self._rank_sampler = RankSampler(
            loader.dataset,
            num_replicas=world_size,
            rank=rank,
            shuffle=isinstance(loader.sampler, RandomSampler),
            seed=seed,
            drop_last=loader.drop_last,
        )
        super().__init__(
            loader.dataset,
            batch_size=loader.batch_size,
            sampler=self._rank_sampler,
            drop_last=loader.drop_last,
            num_workers=loader.num_workers,
            collate_fn=loader.collate_fn,
            pin_memory=loader.pin_memory,
            timeout=loader.timeout,
            worker_init_fn=loader.worker_init_fn,
            multiprocessing_context=loader.multiprocessing_context,
            prefetch_factor=loader.prefetch_factor,
            persistent_workers=loader.persistent_workers,
        )

    def state_dict(self) -> dict[str, int]:
        """Position of the training, not of workers that read ahead."""
        epoch, batches = self._position()
        return {"epoch": epoch, "batches": batches}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """The next iteration begins there."""
        self._rank_sampler.set_epoch(state["epoch"])
        self._rank_sampler.begin_at = state["batches"] * (self.batch_size or 1)


def divide(loader: object, *, rank: int, world_size: int, seed: int, position: Position) -> object:
    """The part of one rank. Other iterables than a DataLoader, and iterable datasets, divide themselves."""
    if not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
        return loader
    return RankLoader(loader, rank=rank, world_size=world_size, seed=seed, position=position)
