"""What bounds and shortens the words of bad days: shipped logs, the last lines of scripts, reasons of failures."""

import json
from pathlib import Path

import pytest

from holdfast.localcloud import LocalCloud
from holdfast.localcloud.hyperpod import lifecycle
from holdfast.localcloud.hyperpod.logs import FileTail


def read_all(tail: FileTail) -> list[str]:
    lines: list[str] = []
    while read := tail.read():
        lines += read
    return lines


def test_a_log_is_shipped_up_to_its_bound_and_says_so_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("0123456\n" * 10)
    tail = FileTail(path=path, group="g", stream="s", most_bytes=35)

    shipped = read_all(tail)
    with path.open("a") as log:
        log.write("more\n" * 100)

    assert shipped[:-1] == ["0123456"] * 4
    assert "log cut at 35 bytes; the rest is on the node only" in shipped[-1]
    assert read_all(tail) == []


def test_a_log_that_just_fits_is_shipped_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("0123456\n" * 4)

    assert read_all(FileTail(path=path, group="g", stream="s", most_bytes=32)) == ["0123456"] * 4


def test_a_log_grows_in_pieces_to_the_same_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    path.write_text("0123456\n" * 10)
    at_once = read_all(FileTail(path=path, group="g", stream="s", most_bytes=35))

    monkeypatch.setattr("holdfast.localcloud.hyperpod.logs.events.CHUNK_BYTES", 9)

    assert read_all(FileTail(path=path, group="g", stream="s", most_bytes=35)) == at_once


@pytest.mark.parametrize(
    ("said", "logged", "last"),
    [
        (["a", "b"], [], ["a", "b"]),
        ([], list("123456789"), list("456789")),
        (list("abcdefgh"), list("12345678"), [*"fgh", *"678"]),
        (list("abcdefgh"), ["1"], [*"defgh", "1"]),
        (["a"], list("12345678"), ["a", *"45678"]),
    ],
)
def test_neither_output_nor_log_pushes_the_other_out_of_a_reason(
    said: list[str], logged: list[str], last: list[str]
) -> None:
    assert lifecycle.last_lines(reported=said, logged=logged) == last


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1, "failed with exit code 1"),
        (126, "failed with exit code 126"),
        (130, "failed with exit code 130 (SIGINT)"),
        (255, "failed with exit code 255"),
        (-9, "was killed by SIGKILL"),
        (None, "timed out after 2 s"),
    ],
)
def test_how_a_script_ended_is_said_in_words(code: int | None, words: str) -> None:
    assert lifecycle.how_it_ended(code, timeout_s=2.0) == words


def test_instances_that_failed_for_one_reason_share_a_line(tmp_path: Path) -> None:
    def line(node: str, evidence: str, kind: str = "node_failed") -> str:
        event = {"version": 1, "time_ns": 1, "source": "control-plane", "kind": kind, "node": node}
        return "2026-11-22 12:00:00,000 INFO events: " + json.dumps({**event, "evidence": evidence})

    log = tmp_path / "log" / "hyperpod.log"
    log.parent.mkdir()
    lines = [line("i-1", "x"), line("i-2", "y"), line("i-3", "x"), line("i-4", "z", "node_lost"), "no event {"]
    lines += [line("i-5", "quoted").replace("INFO events:", "WARNING events: a line was refused:")]
    log.write_text("\n".join(lines))

    assert LocalCloud(home=tmp_path).node_failures() == ["instance i-1 and 1 more: x", "instance i-2: y"]
    assert LocalCloud(home=tmp_path).node_failures(since_ns=2) == []
