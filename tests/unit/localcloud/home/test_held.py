"""One home, one command: who has it, what the second one is told, and what a killed one leaves."""

import json
import os
import time
from pathlib import Path

import pytest

from holdfast.localcloud import LocalCloud
from holdfast.localcloud.home import LOCK, MARKER, HomeError, claim
from holdfast.localcloud.processes import HeldError, Holder, hold, holder_of


@pytest.fixture
def home(tmp_path: Path) -> Path:
    claim(tmp_path / "home")
    return tmp_path / "home"


def left_by_a_killed_command(home: Path, *, removing: bool = False, pid: int = 1 << 22) -> None:
    """Its record, and no lock."""
    record = {"pid": pid, "start_ticks": 1, "verb": "up", "since": 0.0, "removing": removing}
    (home / LOCK).write_text(json.dumps(record).ljust(256))


def test_a_second_command_is_told_who_has_the_home_and_since_when_without_waiting(home: Path) -> None:
    began = time.monotonic()
    with hold(home, verb="up"), pytest.raises(HeldError) as told, hold(home, verb="rehearse"):
        raise AssertionError
    assert time.monotonic() - began < 0.9
    assert told.value.holder is not None
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(told.value.holder.since))
    assert str(told.value) == (
        f"holdfast up (pid {os.getpid()}) is using {home} since {since}; "
        "wait until it exits, or end it with: holdfast down"
    )
    assert "\n" not in str(told.value)


def test_a_second_down_is_not_told_to_end_the_first(home: Path) -> None:
    with hold(home, verb="down"), pytest.raises(HeldError, match=r"wait until it exits$"), hold(home, verb="down"):
        raise AssertionError


def test_a_home_is_free_when_its_command_has_ended_well_or_badly(home: Path) -> None:
    with hold(home, verb="up"):
        assert holder_of(home) is not None
    assert holder_of(home) is None
    with pytest.raises(RuntimeError), hold(home, verb="up"):
        raise RuntimeError
    assert holder_of(home) is None
    with hold(home, verb="up"):
        pass


def test_the_record_of_a_killed_command_names_nobody(home: Path) -> None:
    left_by_a_killed_command(home)
    assert holder_of(home) is None
    with hold(home, verb="up") as found:
        assert not found.fresh


def test_a_pid_that_another_process_has_by_now_is_not_the_holder(home: Path) -> None:
    left_by_a_killed_command(home, pid=os.getpid())
    assert holder_of(home) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"pid": "x"}', b"\xff" * 300])
def test_a_torn_record_is_none(home: Path, content: bytes) -> None:
    (home / LOCK).write_bytes(content)
    assert holder_of(home) is None
    with hold(home, verb="up"):
        assert holder_of(home) is not None


def test_a_folder_that_is_none_of_ours_gets_no_file(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(HomeError, match="is not empty and has no"), hold(tmp_path, verb="up"):
        raise AssertionError
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_command_that_makes_no_home_leaves_no_folder(tmp_path: Path) -> None:
    with hold(tmp_path / "home", verb="up") as found:
        assert found.fresh
        assert (tmp_path / "home").is_dir()
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("left", [(LOCK,), (LOCK, f"{MARKER}.part"), (f"{MARKER}.part",)], ids=" ".join)
def test_what_a_command_leaves_that_is_killed_while_it_makes_a_home_becomes_one(
    tmp_path: Path, left: tuple[str, ...]
) -> None:
    for name in left:
        (tmp_path / name).touch()
    local = LocalCloud(home=tmp_path)
    with local.held(verb="up") as found:
        assert found.fresh
        local.claim()
    assert local.is_claimed()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [LOCK, MARKER, "aws"]


def test_a_removal_that_was_cut_short_is_finished_by_the_next_command(home: Path) -> None:
    (home / "kubernetes").mkdir()
    (home / "kubernetes/etcd").touch()
    left_by_a_killed_command(home, removing=True)
    local = LocalCloud(home=home)
    with local.held(verb="up") as found:
        assert found.fresh
        assert not (home / "kubernetes").exists()
        local.claim()
    with local.held(verb="up") as found:
        assert not found.fresh
        assert local.is_claimed()


def test_a_removal_that_fails_is_finished_by_the_next_command(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = LocalCloud(home=home)
    (home / "kubernetes").mkdir()

    def fail(_: object) -> None:
        raise OSError("busy")

    with monkeypatch.context() as broken:
        broken.setattr("holdfast.localcloud.home.marking.remove_tree", fail)
        with pytest.raises(OSError, match="busy"), local.held(verb="down"):
            local.remove()
    assert (home / "kubernetes").exists()
    with local.held(verb="up") as found:
        assert found.fresh
        assert not (home / "kubernetes").exists()


def test_after_a_removal_nothing_is_there(home: Path) -> None:
    local = LocalCloud(home=home)
    with local.held(verb="down"):
        assert local.remove() == []
    assert not home.exists()


def test_what_others_put_into_a_home_stays_without_a_trace_of_ours(home: Path) -> None:
    (home / "letters").touch()
    local = LocalCloud(home=home)
    with local.held(verb="down"):
        assert local.remove() == ["letters"]
    assert [entry.name for entry in home.iterdir()] == ["letters"]


def test_a_home_that_is_half_removed_is_taken_by_nobody(home: Path) -> None:
    """The lock goes last, so that a second command sees it while the marker is gone."""
    local = LocalCloud(home=home)
    with local.held(verb="down"):
        local.remove()
        with pytest.raises(HeldError, match="holdfast down"), local.held(verb="up"):
            raise AssertionError


def test_a_holder_is_named_by_its_verb() -> None:
    assert str(Holder(pid=7, start_ticks=1, verb="images add", since=0.0)) == "holdfast images add (pid 7)"
