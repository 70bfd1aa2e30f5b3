"""What a receiver compares with the donor's word, each for itself: a donor here tells one thing wrong."""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from holdfast_runtime import transfer
from holdfast_runtime.checksums import checksum_of
from holdfast_runtime.transfer import Flat, TransferError, receive

GENERATION, STEP = 3, 17
SKELETON = json.dumps({"tensors": []}).encode()
Said = Callable[[socket.socket], None]
Take = Callable[..., Flat]


def send_header(connection: socket.socket, **changes: object) -> None:
    header = {
        "refusal": "",
        "generation": GENERATION,
        "step": STEP,
        "skeleton_bytes": len(SKELETON),
        "tensors": [],
        **changes,
    }
    data = json.dumps(header).encode()
    connection.sendall(transfer.LENGTH.pack(len(data)) + data)


def send_chunk(connection: socket.socket, content: bytes, *, size: int | None = None) -> int:
    checksum = checksum_of([memoryview(content)])
    connection.sendall(transfer.CHUNK.pack(len(content) if size is None else size, checksum) + content)
    return checksum


def send_end(connection: socket.socket, checksums: list[int], **changes: int) -> None:
    said = {"generation": GENERATION, "step": STEP, "size": 0, **changes}
    digest = transfer.digest_of(checksums, generation=said["generation"], step=said["step"])
    connection.sendall(transfer.CHUNK.pack(said["size"], digest))


OTHERS = (("b", "c", 1), ("a", "d", 1), ("a", "c", 2))
"""Token, challenge, port."""


@pytest.fixture
def take() -> Iterator[Take]:
    """Receive from a donor that says this after the greeting."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        threads: list[threading.Thread] = []

        def answer(say: Said) -> None:
            connection, _ = door.accept()
            with connection, contextlib.suppress(OSError):  # the receiver may go as soon as it has heard enough
                connection.sendall(bytes(transfer.NONCE_BYTES))
                (length,) = struct.unpack("!I", connection.recv(4, socket.MSG_WAITALL))
                connection.recv(length, socket.MSG_WAITALL)
                say(connection)
                connection.recv(1)

        def from_donor(say: Said, token: str = "") -> Flat:
            threads.append(threading.Thread(target=answer, args=(say,), daemon=True))
            threads[-1].start()
            return receive([door.getsockname()[:2]], generation=GENERATION, step=STEP, token=token, deadline_s=20.0)

        yield from_donor
        for thread in threads:
            thread.join(20.0)


def test_the_end_is_the_digest_of_these_chunks_in_this_generation_and_at_this_step(take: Take) -> None:
    for wrong in ({"generation": GENERATION + 1}, {"step": STEP + 1}, {"size": 1}):

        def say(connection: socket.socket, wrong: dict[str, int] = wrong) -> None:
            send_header(connection)
            send_end(connection, [send_chunk(connection, SKELETON)], **wrong)

        with pytest.raises(TransferError, match="the digest of the whole is not the donor's"):
            take(say)


def test_chunks_that_are_whole_one_by_one_are_not_yet_the_state(take: Take) -> None:
    """As when a donor mixes two steps: every checksum is right."""

    def say(connection: socket.socket) -> None:
        send_header(connection)
        send_chunk(connection, SKELETON)
        send_end(connection, [checksum_of([memoryview(b"of another step")])])

    with pytest.raises(TransferError, match="the digest of the whole is not the donor's"):
        take(say)


@pytest.mark.parametrize("changes", [{"generation": GENERATION - 1}, {"step": STEP - 1}])
def test_another_generation_or_step_is_refused_at_once(take: Take, changes: dict[str, int]) -> None:
    with pytest.raises(TransferError, match="offered is generation"):
        take(lambda connection: send_header(connection, **changes))


def test_a_chunk_of_another_size_is_refused_before_it_is_read(take: Take) -> None:
    def say(connection: socket.socket) -> None:
        send_header(connection)
        send_end(connection, [send_chunk(connection, SKELETON, size=len(SKELETON) - 1)])

    with pytest.raises(TransferError, match="were due"):
        take(say)


def test_a_digest_is_of_its_generation_and_step() -> None:
    assert (
        len({transfer.digest_of([1], generation=generation, step=step) for generation in (1, 2) for step in (1, 2)})
        == 4
    )


@pytest.mark.parametrize("proof", ["", "0" * 64])
def test_a_donor_that_does_not_know_the_token_is_no_donor(take: Take, proof: str) -> None:
    """As who listens at the port of a rank that died, and has a state of his own to give."""

    def say(connection: socket.socket) -> None:
        send_header(connection, proof=proof)
        send_end(connection, [send_chunk(connection, SKELETON)])

    with pytest.raises(TransferError, match="the other side does not have the token of this run"):
        take(say, token="ours")


def test_a_donors_proof_is_of_one_header_one_receiver_and_one_place() -> None:
    header = transfer.Header(generation=1, step=2, skeleton_bytes=3, tensors=(("float32", (2,)),))
    changed = (replace(header, step=3), replace(header, tensors=()))
    proofs = {each.prove(token="a", challenge="c", port=1) for each in (header, *changed)}
    proofs |= {header.prove(token=token, challenge=challenge, port=port) for token, challenge, port in OTHERS}

    assert len(proofs) == 1 + len(changed) + len(OTHERS)


@pytest.mark.parametrize(
    "header", [b"[" * 100_000, b'{"generation":1,"step":1,"name":"\\ud800"}', b'"'], ids=["deep", "surrogate", "torn"]
)
def test_a_stranger_ends_with_its_connection_and_writes_no_log(
    header: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    donor = transfer.Server(host="127.0.0.1", token="ours", deadline_s=20.0, patience_s=0.0)
    try:
        with socket.create_connection(("127.0.0.1", donor.port)) as stranger:
            stranger.sendall(transfer.LENGTH.pack(len(header)) + header)
            while stranger.recv(1 << 16):
                pass
    finally:
        donor.close()
    assert capfd.readouterr().err == ""
