"""Which size an elastic job has next, when a change is worth it, and which sizes are refused before it begins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_runtime.launcher.settings import parse_options
from holdfast_runtime.membership import STEADY_S, Asked, change, newest, next_size

SIZES = (2, 3, 4)


def test_a_job_is_as_large_as_was_asked_for_and_as_there_are_processes_for() -> None:
    assert next_size(SIZES, current=4, asked=0, there=4) == 4
    assert next_size(SIZES, current=4, asked=2, there=4) == 2
    assert next_size(SIZES, current=2, asked=4, there=3) == 3


def test_a_lost_process_that_nobody_can_replace_makes_the_job_smaller_at_once() -> None:
    assert next_size(SIZES, current=4, asked=0, there=3, places=3, waited=False) == 3


def test_a_lost_process_whose_place_is_being_filled_is_waited_for_and_not_for_ever() -> None:
    waits = next_size(SIZES, current=4, asked=0, there=3, places=4, waited=False)

    assert waits == "3 processes are available, 4 are required to keep the size; replacements are starting"
    assert next_size(SIZES, current=4, asked=0, there=3, places=4, waited=True) == 3


def test_with_fewer_processes_than_the_smallest_size_there_is_no_view() -> None:
    assert next_size(SIZES, current=2, asked=0, there=1) == "1 processes are available, 2 are required"


def test_a_running_job_grows_only_into_processes_that_stay() -> None:
    assert change(SIZES, current=2, asked=0, there=4, steady_s=STEADY_S / 2) == 0
    assert change(SIZES, current=2, asked=0, there=4, steady_s=STEADY_S) == 4
    assert change(SIZES, current=4, asked=2, there=4, steady_s=0.0) == 2, "to shrink nobody has to come"
    assert change(SIZES, current=4, asked=0, there=4, steady_s=9.0) == 0


def test_the_last_of_several_wishes_counts_at_every_launcher() -> None:
    wishes = [Asked(1, 2), Asked(3, 4), Asked(2, 3), Asked(3, 3)]

    assert newest(wishes) == newest(reversed(wishes)) == Asked(3, 4)


@given(
    sizes=st.sets(st.integers(1, 40), min_size=1).map(sorted),
    current=st.integers(0, 40),
    asked=st.integers(0, 40),
    there=st.integers(0, 60),
)
def test_a_size_is_always_allowed_and_never_more_than_there_are_processes(
    sizes: list[int], current: int, asked: int, there: int
) -> None:
    found = next_size(sizes, current=current, asked=asked, there=there)

    if isinstance(found, str):
        assert there < max([size for size in sizes if size <= asked], default=min(sizes)) or there < min(sizes)
    else:
        assert found in sizes
        assert found <= there
        assert not asked or found <= max(asked, min(sizes))


def options(*arguments: str) -> tuple[int, ...]:
    known = ("--peers", ",".join(f"127.0.0.1:{port}" for port in range(1, 5)), "--node-rank", "0")
    return parse_options([*known, *arguments, "never.py"], {"HOLDFAST_TOKEN": "a test's"}).sizes


def test_sizes_are_those_that_are_named_or_all_of_the_range() -> None:
    assert options("--nnodes", "2:4") == (2, 3, 4)
    assert options("--nnodes", "2:4", "--sizes", "4,2") == (2, 4)
    assert options("--sizes", "1,4") == (1, 4)
    assert options("--nnodes", "2:4", "--spare-nodes", "1") == (2, 3)
    assert options("--nnodes", "4") == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--nnodes", "4:2"), "--nnodes is 4:2; allowed: MIN:MAX with MIN of 1 or more and not above MAX"),
        (("--nnodes", "two"), "--nnodes is 'two'; allowed: N, or MIN:MAX"),
        (("--sizes", "2;3"), "--sizes is '2;3'; allowed: numbers of nodes with commas between them"),
        (("--sizes", "4"), "--sizes names 4 only, which is the size of all nodes"),
        (("--nnodes", "2:4", "--sizes", "1,3,9"), "--sizes names 9; allowed: 2 to 4 nodes"),
        (("--nnodes", "2:4", "--sizes", "1,3,9"), "--sizes names 1; allowed: 2 to 4 nodes"),
        (("--nnodes", "4:4", "--sizes", "3,4", "--spare-nodes", "1"), "--sizes names 4; allowed: 1 to 3 nodes"),
    ],
)
def test_sizes_that_cannot_be_are_refused_all_at_once(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        options(*arguments)

    assert message in capsys.readouterr().err
