"""The token of a run: where it comes from, and what a link is worth to who does not know it."""

import asyncio
import itertools
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast_runtime.control import MessageError
from holdfast_runtime.launcher.links import Hello, Proofs, Refused, SealedLine, TokenError, run_token
from holdfast_runtime.launcher.settings import parse_options, variables

HELLO = Hello(node=1, incarnation=0, uid="u", run_id="7", host="h", port=1, met=(), nonce="n")


def token(home: Path, *, nodes: int = 2, run_id: str = "7", environment: Mapping[str, str] | None = None) -> str:
    return run_token(environment=environment or {}, nodes=nodes, run_id=run_id, home=home)


def test_the_token_that_is_set_is_taken(tmp_path: Path) -> None:
    assert token(tmp_path, environment={"HOLDFAST_TOKEN": "mine"}) == "mine"
    assert list(tmp_path.iterdir()) == []


def test_a_launcher_alone_makes_one_and_writes_it_nowhere(tmp_path: Path) -> None:
    assert len({token(tmp_path, nodes=1) for _ in range(3)}) == 3
    assert list(tmp_path.iterdir()) == []


def test_launchers_of_one_run_have_the_same_and_other_runs_have_another(tmp_path: Path) -> None:
    mine = {token(tmp_path) for _ in range(3)}

    assert len(mine) == 1
    assert len(mine.pop()) == 64
    assert token(tmp_path, run_id="8") != token(tmp_path)
    assert token(tmp_path, run_id="../../x y")
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / ".holdfast/run-tokens").iterdir())


def test_what_others_can_read_or_have_put_there_is_refused(tmp_path: Path) -> None:
    token(tmp_path)
    folder = tmp_path / ".holdfast/run-tokens"
    (path,) = folder.iterdir()

    path.chmod(0o644)
    with pytest.raises(TokenError, match="HOLDFAST_TOKEN is not set"):
        token(tmp_path)
    path.unlink()
    path.symlink_to("/dev/null")
    with pytest.raises(TokenError, match="HOLDFAST_TOKEN is not set"):
        token(tmp_path)
    path.unlink()
    folder.chmod(0o777)
    with pytest.raises(TokenError, match="this user's"):
        token(tmp_path)


def test_a_home_that_cannot_be_written_names_the_way_out(tmp_path: Path) -> None:
    (tmp_path / ".holdfast").write_text("")

    with pytest.raises(TokenError, match=r"export HOLDFAST_TOKEN=\$\(openssl"):
        token(tmp_path)


def test_tokens_of_runs_long_ago_are_removed(tmp_path: Path) -> None:
    token(tmp_path)
    (old,) = (tmp_path / ".holdfast/run-tokens").iterdir()
    os.utime(old, (0, 0))

    token(tmp_path, run_id="8")

    assert not old.exists()


def test_the_number_of_the_job_says_nothing_about_the_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    arguments = ["--nnodes", "2", "--rdzv-endpoint", "127.0.0.1:1", "script.py"]
    options = parse_options(arguments, {"SLURM_JOB_ID": "17"})

    assert options.run_id == "17"
    assert len(options.token) == 64
    assert options.token not in repr(options)


def test_the_ranks_of_a_run_have_its_token() -> None:
    options = parse_options(["script.py"], {})
    given = variables(options, rank=0, slot=0, generation=1, restarts=0, master=("h", 1), base={})

    assert given["HOLDFAST_TOKEN"] == options.token


def test_a_proof_is_good_for_one_role_one_pair_of_nonces_and_one_message() -> None:
    ours, theirs = Proofs(run_id="7", token="a"), Proofs(run_id="7", token="b")
    call = ours.call(HELLO, challenge="c")
    answer = ours.answer(replace(HELLO, node=0, nonce="m"), challenge="c", call=call)
    refusal = ours.refusal(Refused("taken", "another launcher", 9), challenge="c", call=call)

    assert ours.is_call(call, challenge="c")
    assert ours.is_answer(answer, challenge="c", call=call)
    assert ours.is_answer(refusal, challenge="c", call=call)
    assert not theirs.is_call(call, challenge="c")
    assert not ours.is_call(call, challenge="d")
    assert not ours.is_call(replace(call, node=0), challenge="c")
    assert not ours.is_call(replace(answer, nonce=call.nonce), challenge="c")
    assert not ours.is_answer(call, challenge="c", call=call)
    assert not ours.is_answer(answer, challenge="c", call=replace(call, nonce="o"))
    assert not ours.is_answer(replace(refusal, incarnation=10), challenge="c", call=call)
    assert not Proofs(run_id="8", token="a").is_call(call, challenge="c")


def read(line: SealedLine, data: bytes) -> list[bytes]:
    async def all_of_it() -> list[bytes]:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        found = []
        while (one := await line.read(reader)) is not None:
            found.append(one)
        return found

    return asyncio.run(all_of_it())


def test_lines_come_out_as_they_went_in_and_a_cut_one_is_the_end() -> None:
    caller, called = SealedLine(b"k", calling=True), SealedLine(b"k", calling=False)
    data = b"".join(caller.seal(line) for line in (b"one", b"", b"three"))

    assert read(called, data + caller.seal(b"four")[:-1]) == [b"one", b"", b"three"]


@pytest.mark.parametrize("fault", ["other key", "changed", "repeated", "swapped", "sent back", "long"])
def test_a_line_that_somebody_else_had_a_hand_in_ends_the_link(fault: str) -> None:
    caller, called = SealedLine(b"k", calling=True), SealedLine(b"k", calling=False)
    one, two = caller.seal(b"one"), caller.seal(b"two")
    data = {
        "other key": SealedLine(b"l", calling=True).seal(b"one"),
        "changed": one[:-1] + b"x",
        "repeated": one + one,
        "swapped": two + one,
        "sent back": SealedLine(b"k", calling=False).seal(b"one"),
        "long": b"\xff" * 64,
    }[fault]

    with pytest.raises(MessageError):
        read(called, data)


def test_no_two_connections_have_one_key() -> None:
    proofs = Proofs(run_id="7", token="a")
    pairs = itertools.product("ab", repeat=2)

    assert len({proofs.key(challenge=one, call=replace(HELLO, nonce=two)) for one, two in pairs}) == 4
