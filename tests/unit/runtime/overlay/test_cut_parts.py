"""How soon the others know of launchers that fall silent, from who has heartbeats from whom, at any size of the job."""

import pytest

from holdfast_runtime.overlay import NEIGHBOURS, REPORTERS, Ring

SIZES = (10, 16, 100, 256, 4096)


@pytest.mark.parametrize("size", range(1, 2 * NEIGHBOURS + 2))
def test_in_a_small_job_all_watch_all(size: int) -> None:
    ring = Ring(range(size))
    assert all(ring.beside(me) == set(range(size)) - {me} for me in range(size))


@pytest.mark.parametrize("size", SIZES)
def test_in_a_large_job_each_watches_as_many_as_watch_it_and_never_more_than_a_few(size: int) -> None:
    ring = Ring(range(size))
    for me in range(0, size, max(1, size // 8)):
        chosen = ring.beside(me)
        assert len(chosen) == 2 * NEIGHBOURS
        assert me not in chosen
        assert all(me in ring.beside(other) for other in chosen)


def rounds_until_known(size: int, silent: set[int]) -> int:
    """Heartbeat deadlines until all that are left know of all that are silent; those in no reach watch no longer."""
    up = set(range(size))
    rounds = 0
    while up & silent:
        ring = Ring(up)
        reports = [other for me in up - silent for other in ring.beside(me) & silent]
        believed = {node for node in silent if reports.count(node) >= REPORTERS}
        assert believed, f"{len(up & silent)} of {size} are never found silent"
        up -= believed
        rounds += 1
    return rounds


@pytest.mark.parametrize("size", [16, 100, 256])
def test_one_that_is_silent_is_known_to_all_after_one_deadline(size: int) -> None:
    assert rounds_until_known(size, {size // 3}) == 1


@pytest.mark.parametrize("size", [16, 64, 100, 256])
@pytest.mark.parametrize("part", ["a rack", "the lower half", "the upper half", "every other"])
def test_a_part_that_is_cut_off_is_known_after_three_deadlines_at_most(size: int, part: str) -> None:
    silent = {
        "a rack": set(range(size // 4, size // 4 + 8)),
        "the lower half": set(range(size // 2)),
        "the upper half": set(range(size // 2, size)),
        "every other": set(range(0, size, 2)),
    }[part]

    assert rounds_until_known(size, silent) <= 3
