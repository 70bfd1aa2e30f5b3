"""Snapshots in other processes' memory: kept and handed out among those who know the run's token."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from holdfast_runtime import snapshots
from holdfast_runtime.snapshots import Block, Keeper, Label, Layout, Link, SnapshotError, proof_of, proves


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    made = Keeper(host="127.0.0.1", deadline_s=20.0, token="ours")
    made.open(generation=1, wards=[0], resume_step=0)
    yield made
    made.close()


def visit(port: int) -> Link:
    return Link.connect("127.0.0.1", port, deadline_s=20.0)


def test_who_does_not_know_the_token_neither_brings_nor_fetches(keeper: Keeper) -> None:
    for token in ("", "theirs"):
        with closing(visit(keeper.port)) as link, pytest.raises(SnapshotError, match="the proof of the run's token"):
            snapshots.fetch(Block(), link, generation=1, rank=0, step=1, token=token)
    with closing(visit(keeper.port)) as link, pytest.raises(SnapshotError, match="is not here"):
        snapshots.fetch(Block(), link, generation=1, rank=0, step=1, token="ours")


def test_a_shard_of_somebody_who_does_not_know_the_token_is_not_taken() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as door,
        closing(visit(door.getsockname()[1])) as link,
        closing(Link(door.accept()[0], deadline_s=20.0)) as impostor,
    ):
        impostor.greet()
        impostor.send_object({"label": {}, "proof": "0" * 64})
        with pytest.raises(SnapshotError, match="the other side does not have the token"):
            snapshots.fetch(Block(), link, generation=1, rank=0, step=1, token="ours")


@pytest.mark.parametrize(
    "header",
    [b'{"proof": "0"}', b'["' + b"x" * 10_000 + b'"]', b"[" * 10_000, b""],
    ids=["token", "list", "deep", "none"],
)
def test_strangers_cannot_fill_the_log_of_a_job(
    keeper: Keeper, caplog: pytest.LogCaptureFixture, header: bytes
) -> None:
    for _ in range(40):
        with socket.create_connection(("127.0.0.1", keeper.port)) as stranger:
            stranger.sendall(len(header).to_bytes(4, "big") + header if header else b"")
            stranger.shutdown(socket.SHUT_WR)
            while stranger.recv(1 << 16):
                pass
    with closing(visit(keeper.port)) as link, pytest.raises(SnapshotError, match="is not here"):
        snapshots.fetch(Block(), link, generation=1, rank=0, step=1, token="ours")
    for thread in threading.enumerate():
        if thread.name == "snapshots-visit":
            thread.join(10)

    assert len(caplog.messages) == 32 + 1, "that of the rank, too"
    assert sum("is not here" in text for text in caplog.messages) == 1
    assert max(map(len, caplog.messages)) < 200


def test_a_keeper_that_has_asked_for_no_block_has_none() -> None:
    label = Label(0, 1, Layout((), 0), (), b"").sealed()
    with (
        socket.create_server(("127.0.0.1", 0)) as door,
        closing(visit(door.getsockname()[1])) as link,
        closing(Link(door.accept()[0], deadline_s=20.0)) as keeper,
    ):
        keeper.greet()
        keeper.send_object({"kept": label.digest})
        with pytest.raises(SnapshotError, match="kept"):
            snapshots.bring(Block(), label, link, generation=1, keep=1, token="ours")


def test_a_proof_is_of_one_message_and_one_challenge() -> None:
    request = {"kind": "fetch", "generation": 1}
    signed = {**request, "proof": proof_of(request, token="ours", challenge="c")}

    assert proves(signed, token="ours", challenge="c")
    assert not proves(signed, token="ours", challenge="d")
    assert not proves({**signed, "generation": 2}, token="ours", challenge="c")
    assert not proves(request, token="ours", challenge="c")
