"""Whom each launcher watches, and how soon all know of those that fell silent, at any size of the job."""

import pytest

from holdfast_runtime.launcher.links import ACCUSERS, NEIGHBOURS, is_believed, lateness_s, patience_s, watched

SIZES = (10, 16, 100, 256, 4096)


@pytest.mark.parametrize("size", range(1, 2 * NEIGHBOURS + 2))
def test_in_a_small_job_all_watch_all(size: int) -> None:
    assert all(watched(me, range(size)) == set(range(size)) - {me} for me in range(size))


@pytest.mark.parametrize("size", SIZES)
def test_in_a_large_job_each_watches_as_many_as_watch_it_and_never_more_than_a_few(size: int) -> None:
    step = max(1, size // 8)
    for me in range(0, size, step):
        chosen = watched(me, range(size))
        assert len(chosen) == 2 * NEIGHBOURS
        assert me not in chosen
        assert all(me in watched(other, range(size)) for other in chosen)


def rounds_until_known(size: int, silent: set[int]) -> int:
    """
    How many heartbeat deadlines pass until all that are left know of all that are silent. In each, what a launcher
    watches is told, and what two have told is believed; whoever is not in reach any more is watched no longer.
    """
    up = set(range(size))
    rounds = 0
    while up & silent:
        accusers: dict[int, int] = {}
        for me in up - silent:
            for other in watched(me, up) & silent:
                accusers[other] = accusers.get(other, 0) + 1
        believed = {node for node, count in accusers.items() if count >= ACCUSERS}
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


def test_one_accuser_is_not_believed_and_neither_are_two_at_different_times() -> None:
    assert not is_believed({3: 10.0}, now_s=10.0, within_s=1.5)
    assert is_believed({3: 10.0, 5: 9.0}, now_s=10.0, within_s=1.5)
    assert not is_believed({3: 10.0, 5: 8.0}, now_s=10.0, within_s=1.5)


def test_a_launcher_that_is_late_itself_waits_longer_for_others_and_not_for_ever() -> None:
    assert patience_s(1.5, late_s=0.0) == 1.5
    assert patience_s(1.5, late_s=0.5) == 3.5
    assert patience_s(1.5, late_s=60.0) == 15.0


def test_a_launcher_whose_signs_of_life_come_late_is_known_to_until_they_come_in_time_again() -> None:
    late_s = 0.0
    for silent_s in (0.5, 0.5, 1.3, 0.5):
        late_s = lateness_s(late_s, late_s=silent_s - 0.5, beats=silent_s / 0.5)
    forgotten_s = late_s
    for _ in range(60):
        forgotten_s = lateness_s(forgotten_s, late_s=0.0, beats=1.0)

    assert lateness_s(0.0, late_s=0.0, beats=1.0) == 0.0
    assert late_s == pytest.approx(0.8 * 0.9)
    assert forgotten_s < 0.01


def test_many_lines_in_a_short_time_do_not_make_lateness_forgotten() -> None:
    late_s = 1.0
    for _ in range(100):
        late_s = lateness_s(late_s, late_s=-0.499, beats=0.002)

    assert late_s > 0.9
