"""Logs that grow, are rotated, cut and replaced while they are read, and the kernel's device, which forgets."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_agent.logs import DeviceLog, FollowedFile, Source


def lines(source: Source) -> list[str]:
    found: list[str] = []
    while True:
        batch = source.read()
        found += [line.decode() for line in batch.lines]
        if not batch.more:
            return found


def test_a_file_is_read_once_and_then_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\nthr")
    source = FollowedFile(str(path))
    assert lines(source) == ["one", "two"]
    with path.open("a") as file:
        file.write("ee\nfour\n")
    assert lines(source) == ["three", "four"]
    assert lines(source) == []


def test_a_file_that_is_rotated_is_read_to_its_end_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\n")
    source = FollowedFile(str(path))
    assert lines(source) == ["one"]
    with path.open("a") as file:
        file.write("last\n")
    path.rename(tmp_path / "log.1")
    path.write_text("first\n")
    assert lines(source) == ["last", "first"]


def test_a_file_that_is_cut_and_written_again_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\n")
    source = FollowedFile(str(path))
    lines(source)
    path.write_text("new\n")
    assert lines(source) == ["new"]
    path.write_text("longer than it was before\n")
    assert lines(source) == ["longer than it was before"]


def test_a_file_that_is_absent_is_said_and_found_when_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    source = FollowedFile(str(path), from_start=False)
    assert "No such file" in source.read().missing
    path.write_text("old\n")
    assert lines(source) == []  # who begins at the end begins at the end of what is there first
    path.unlink()
    assert source.read().missing
    path.write_text("new\n")
    assert lines(source) == ["new"]


def test_a_line_without_an_end_takes_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (1 << 20) + b"\nend\n")
    found = lines(FollowedFile(str(path)))
    assert found[-1] == "end"
    assert "".join(found[:-1]) == "x" * (1 << 20)


@given(
    st.lists(st.text(st.characters(codec="ascii", exclude_characters="\n\r\x0b\x0c\x1c\x1d\x1e")), max_size=20),
    st.data(),
)
def test_a_restart_anywhere_loses_and_repeats_no_line(texts: list[str], data: st.DataObject) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.touch()
        found: list[str] = []
        source = FollowedFile(str(path))
        for text in texts:
            with path.open("a") as file:
                file.write(f"{text}\n")
            action = data.draw(st.sampled_from(["nothing", "read", "restart"]))
            if action != "nothing":
                found += lines(source)
            if action == "restart":
                position = source.position()
                source.close()
                source = FollowedFile(str(path))
                source.go_on(position)
        found += lines(source)
        source.close()
        assert found == texts


class Ring:
    """/dev/kmsg by its documentation, in place of ``os.read``: records, EAGAIN, EPIPE once for who was overtaken."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []
        self.oldest = 0
        self.at: int | None = None

    def say(self, *texts: str) -> None:
        for text in texts:
            self.kept.append(f"4,{self.oldest + len(self.kept)},{1000 * len(self.kept)},-;{text}\n".encode())

    def forget(self, count: int) -> None:
        del self.kept[:count]
        self.oldest += count

    def read(self, _descriptor: int, _size: int) -> bytes:
        at = self.oldest if self.at is None else self.at
        if at < self.oldest:
            self.at = self.oldest
            raise BrokenPipeError(errno.EPIPE, "overtaken")
        if at >= self.oldest + len(self.kept):
            self.at = at
            raise BlockingIOError
        self.at = at + 1
        return self.kept[at - self.oldest]


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Ring:
    made = Ring()
    monkeypatch.setattr("holdfast_agent.logs.device.os.read", made.read)
    return made


def texts(source: Source) -> list[str]:
    return [line.partition(";")[2] for line in lines(source)]


def test_records_that_were_overwritten_are_counted(ring: Ring) -> None:
    source = DeviceLog(os.devnull)
    ring.say("one", "two")
    assert texts(source) == ["one", "two"]
    ring.say("three", "four", "five")
    ring.forget(4)
    batch = source.read()
    assert (batch.lost, len(batch.lines)) == (2, 1)
    source.close()


def test_a_restarted_reader_skips_what_was_read(ring: Ring) -> None:
    source = DeviceLog(os.devnull)
    ring.say("one", "two")
    texts(source)
    position = source.position()
    source.close()
    ring.say("three")
    ring.at = None
    again = DeviceLog(os.devnull)
    again.go_on(position)
    assert texts(again) == ["three"]
    again.close()


def test_records_lost_while_no_agent_ran_are_counted_too(ring: Ring) -> None:
    ring.say("one", "two", "three", "four")
    ring.forget(3)
    source = DeviceLog(os.devnull)
    source.go_on({"sequence": 0})
    batch = source.read()
    assert (batch.lost, len(batch.lines)) == (2, 1)
    source.close()


def test_a_first_reader_has_lost_nothing(ring: Ring) -> None:
    ring.say("one", "two", "three")
    ring.forget(2)
    source = DeviceLog(os.devnull)
    assert source.read().lost == 0
    source.close()


def test_a_log_that_begins_anew_is_read_anew(ring: Ring) -> None:
    ring.say("new")
    source = DeviceLog(os.devnull)
    source.go_on({"sequence": 4000})
    batch = source.read()
    assert batch.more
    ring.at = None  # it opens the device again
    assert texts(source) == ["new"]
    source.close()


def test_a_position_that_was_not_reached_again_is_kept(ring: Ring) -> None:
    source = DeviceLog(os.devnull)
    source.go_on({"sequence": 7})
    assert source.position() == {"sequence": 7}
    source.close()


def test_a_device_that_ends_is_no_kernel_log() -> None:
    assert "not a kernel log" in DeviceLog(os.devnull).read().missing
