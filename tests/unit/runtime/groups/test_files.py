"""Open files of a job: enough for its connections, or refused with the figure."""

import resource

import pytest

from holdfast_runtime.groups import UnsupportedError, files

NONE = resource.RLIM_INFINITY


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Soft and hard limit of this process, which has 10 files open."""
    found = [1024, 4096]
    monkeypatch.setattr(files, "descriptors", lambda: dict.fromkeys(range(10), "file"))
    monkeypatch.setattr(resource, "getrlimit", lambda _what: tuple(found))
    monkeypatch.setattr(resource, "setrlimit", lambda _what, new: found.__setitem__(slice(None), new))
    return found


def test_a_small_job_changes_nothing(limits: list[int]) -> None:
    environment: dict[str, str] = {}

    assert not files.prepare([16, 4, 4], environment=environment)

    assert limits == [1024, 4096]
    assert environment == {files.LAZY: "0"}, "as all ranks of this size have it"


def test_a_large_job_connects_at_the_first_use(limits: list[int]) -> None:
    environment: dict[str, str] = {}

    assert files.prepare([2048, 64, 32], environment=environment)

    assert environment == {files.LAZY: "1"}
    assert limits == [1024, 4096]


def test_the_soft_limit_grows_with_the_groups(limits: list[int]) -> None:
    files.prepare([64] * 30, environment={})

    assert limits == [4096, 4096]


def test_a_soft_limit_without_a_hard_one_grows_to_twice_what_is_needed(limits: list[int]) -> None:
    limits[1] = NONE
    files.prepare([64] * 30, environment={})

    assert limits == [2 * (10 + files.ROOM + 30 * 71), NONE]


def test_a_job_that_needs_more_than_the_hard_limit_is_refused_with_the_figure(limits: list[int]) -> None:
    limits[:] = [64, 64]

    with pytest.raises(UnsupportedError, match=r"got a hard limit of 64 open files; allowed: 97 or more for 1 groups"):
        files.prepare([64], environment={})
