"""State over TCP: what arrives is the donor's, bit for bit, or it is refused with a reason."""

import itertools
import json
import socket
import struct
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from holdfast_runtime import transfer
from holdfast_runtime.faults import Fault, Injector
from holdfast_runtime.transfer import (
    Flat,
    Offer,
    Server,
    TransferError,
    flatten,
    receive,
    unflatten,
)

GENERATION, STEP = 3, 17
LOCAL = "127.0.0.1"


def tree() -> dict[str, object]:
    generator = torch.Generator().manual_seed(5)
    return {
        "large": torch.rand(2_500_000, generator=generator),
        "small": [torch.rand(7, generator=generator) for _ in range(600)],
        "half": torch.rand(33, generator=generator).to(torch.bfloat16),
        "zero": torch.tensor(2.5, dtype=torch.float64),
        "none": torch.empty(0, 4),
        "whole": torch.arange(9).reshape(3, 3).t(),
        "array": np.arange(6, dtype=np.int32).reshape(2, 3),
        "values": {"lr": 0.1, 3: ("a", None, True), "number": np.float64(1.5)},
    }


def same(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return isinstance(other, dict) and list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return isinstance(other, type(one)) and all(map(same, one, other)) and len(one) == len(other)
    return one == other


Make = Callable[..., Server]


@pytest.fixture
def donor() -> Iterator[Make]:
    servers = []

    def make(
        state: object | None = None, *, faults: Injector | None = None, token: str = "", patience_s: float = 0.0
    ) -> Server:
        server = Server(host=LOCAL, faults=faults, token=token, deadline_s=20.0, patience_s=patience_s)
        servers.append(server)
        flat = flatten(tree() if state is None else state)
        server.offer("replica", Offer(generation=GENERATION, step=STEP, state=lambda: flat))
        return server

    yield make
    for server in servers:
        server.close()


def take(*servers: Server | int, **options: object) -> Flat:
    donors = [(LOCAL, server if isinstance(server, int) else server.port) for server in servers]
    settings: dict[str, object] = {"generation": GENERATION, "step": STEP, "deadline_s": 20.0, **options}
    return receive(donors, **settings)  # type: ignore[arg-type]


def link_fault(kind: str) -> Injector:
    return Injector([Fault(kind=kind, phase="copy-out")])  # type: ignore[arg-type]


def test_a_tree_arrives_bit_for_bit(donor: Make) -> None:
    assert same(unflatten(take(donor())), tree())


def test_tensors_are_received_in_place_where_there_is_a_place(donor: Make) -> None:
    wanted = flatten(tree()).tensors
    places = [torch.zeros_like(tensor) for tensor in wanted]
    places[1] = torch.zeros(14)[::2]
    flat = take(donor(), into=lambda number, _dtype, _shape: places[number])
    for got, place, right in zip(flat.tensors, places, wanted, strict=True):
        assert got is place
        assert torch.equal(place, right)


def test_many_small_tensors_share_a_chunk() -> None:
    memory = [memoryview(bytes(100)) for _ in range(500)]
    assert len(list(transfer.chunks_of(memory))) == 1


def test_chunks_have_all_bytes_in_order_and_none_is_too_long() -> None:
    data = np.random.default_rng(1).bytes(3 * transfer.CHUNK_BYTES + 12345)
    cuts = [0, 5, 5, 1000, transfer.CHUNK_BYTES + 7, len(data)]
    memory = [memoryview(data)[start:end] for start, end in itertools.pairwise(cuts)]
    chunks = list(transfer.chunks_of(memory))
    assert b"".join(b"".join(chunk) for chunk in chunks) == data
    assert all(sum(map(len, chunk)) <= transfer.CHUNK_BYTES for chunk in chunks)


def test_several_receivers_are_served_at_once(donor: Make) -> None:
    server = donor()
    with ThreadPoolExecutor(4) as pool:
        states = [future.result() for future in [pool.submit(take, server) for _ in range(4)]]
    assert all(same(unflatten(state), tree()) for state in states)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"generation": 2}, "asked for replica of generation 2, step 17; there is that of generation 3, step 17"),
        ({"step": 16}, "asked for replica of generation 3, step 16; there is that of generation 3, step 17"),
        ({"name": "shard"}, "there is none"),
        ({"token": "guessed"}, "the proof of the job's token is wrong"),
    ],
)
def test_what_is_not_on_offer_is_refused(donor: Make, options: dict[str, object], words: str) -> None:
    with pytest.raises(TransferError, match=words):
        take(donor(), **options)


def test_who_knows_the_token_gets_the_state(donor: Make) -> None:
    assert take(donor({"a": torch.ones(2)}, token="secret"), token="secret").tensors[0].tolist() == [1, 1]


def test_a_wrong_byte_is_found(donor: Make) -> None:
    with pytest.raises(TransferError, match=r"chunk 1 has the checksum"):
        take(donor(faults=link_fault("corrupt")))


def test_without_the_checksum_a_wrong_byte_would_be_taken(donor: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast_runtime.transfer.receiver._compare", lambda _found, _checksum, _number: None)
    state = {"numbers": torch.zeros(400_000, dtype=torch.uint8)}
    faults = Injector([Fault(kind="corrupt", phase="copy-out")])
    flat = take(donor(state, faults=faults))
    assert int(flat.tensors[0].sum()) == 1


@pytest.mark.parametrize("kind", ["corrupt", "cut"])
def test_the_next_donor_gives_what_the_first_could_not(donor: Make, kind: str) -> None:
    assert same(unflatten(take(donor(faults=link_fault(kind)), donor())), tree())


def test_a_donor_that_is_gone_is_passed_over(donor: Make) -> None:
    gone = donor()
    gone.close()
    assert same(unflatten(take(gone, donor())), tree())


def test_a_donor_that_is_not_ready_yet_is_waited_for_and_one_that_is_further_is_not(donor: Make) -> None:
    server = donor(patience_s=20.0)
    later = Offer(generation=GENERATION + 1, step=STEP, state=lambda: flatten(tree()))
    threading.Timer(0.05, server.offer, ("replica", later)).start()

    assert same(unflatten(take(server, generation=GENERATION + 1)), tree())
    with pytest.raises(TransferError, match=f"there is that of generation {GENERATION + 1}"):
        take(server)


def test_a_slow_link_is_waited_for(donor: Make) -> None:
    assert same(unflatten(take(donor(faults=link_fault("slow")))), tree())


def test_without_a_donor_it_says_so() -> None:
    with pytest.raises(TransferError, match="there is none"):
        take()


def test_every_donor_is_named_with_its_reason(donor: Make) -> None:
    cut, other = donor(faults=link_fault("cut")), donor()
    with pytest.raises(TransferError, match=rf"{cut.port}: .*; {LOCAL}:{other.port}: asked for"):
        take(cut, other, step=STEP - 1)


def test_a_state_that_is_withdrawn_while_it_is_sent_is_not_accepted(donor: Make) -> None:
    server = donor(faults=Injector([Fault(kind="slow", phase="copy-out")]))
    threading.Timer(0.3, server.withdraw, ["replica"]).start()
    with pytest.raises(TransferError, match="ended in the middle"):
        take(server)


@pytest.fixture
def odd_donor() -> Iterator[Callable[[Callable[[socket.socket], None]], int]]:
    """A donor that behaves as the test says."""
    sockets: list[socket.socket] = []
    threads = []

    def make(behave: Callable[[socket.socket], None]) -> int:
        server = socket.create_server((LOCAL, 0))
        sockets.append(server)

        def run() -> None:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(10.0)
                try:
                    connection.sendall(bytes(transfer.NONCE_BYTES))
                    behave(connection)
                except OSError:
                    pass

        thread = threading.Thread(target=run)
        thread.start()
        threads.append(thread)
        return int(server.getsockname()[1])

    yield make
    for thread in threads:
        thread.join(10.0)
        assert not thread.is_alive()
    for server in sockets:
        server.close()


def header(connection: socket.socket, **fields: object) -> None:
    connection.recv(65536)
    values = {"refusal": "", "generation": GENERATION, "step": STEP, "skeleton_bytes": 4, "tensors": []} | fields
    data = json.dumps(values).encode()
    connection.sendall(struct.pack("!I", len(data)) + data)


def test_a_donor_that_hangs_is_given_up_for_the_next(odd_donor: Callable[..., int], donor: Make) -> None:
    done = threading.Event()
    hung = odd_donor(lambda connection: (header(connection), done.wait(5.0)))
    began = time.monotonic()
    try:
        assert same(unflatten(take(hung, donor(), stall_s=0.3)), tree())
    finally:
        done.set()
    assert time.monotonic() - began < 4.0


def test_a_donor_that_trickles_cannot_stretch_the_deadline(odd_donor: Callable[..., int]) -> None:
    def trickle(connection: socket.socket) -> None:
        header(connection, skeleton_bytes=4000)
        connection.sendall(transfer.CHUNK.pack(4000, 0))
        for _ in range(200):
            connection.sendall(b"x")
            time.sleep(0.02)

    began = time.monotonic()
    with pytest.raises(TransferError, match="the deadline is over"):
        take(odd_donor(trickle), deadline_s=0.5)
    assert time.monotonic() - began < 2.0


def test_a_receiver_that_has_to_leave_does_so_in_the_middle(odd_donor: Callable[..., int]) -> None:
    done = threading.Event()
    leave = time.monotonic() + 0.3

    def check() -> None:
        if time.monotonic() > leave:
            raise RuntimeError("the generation is over")

    hung = odd_donor(lambda connection: (header(connection), done.wait(5.0)))
    try:
        with pytest.raises(RuntimeError, match="the generation is over"):
            take(hung, check=check)
    finally:
        done.set()
    assert time.monotonic() - leave < 2.0


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tensors": [["nn", [2]]]}, "there is no type nn"),
        ({"step": STEP + 1}, "offered is generation 3, step 18"),
        ({"surprise": 1}, "unexpected keyword"),
    ],
)
def test_a_donor_that_says_something_else_is_refused(
    odd_donor: Callable[..., int], fields: dict[str, object], words: str
) -> None:
    def behave(connection: socket.socket) -> None:
        header(connection, skeleton_bytes=0, **fields)
        connection.recv(1)

    with pytest.raises(TransferError, match=words):
        take(odd_donor(behave))


def test_a_header_without_an_end_is_refused(odd_donor: Callable[..., int]) -> None:
    def behave(connection: socket.socket) -> None:
        connection.sendall(struct.pack("!I", 1 << 31))
        connection.recv(1)

    with pytest.raises(TransferError, match="too long"):
        take(odd_donor(behave))


def test_the_digest_of_the_whole_depends_on_order_generation_and_step() -> None:
    digests = {
        transfer.digest_of([1, 2], generation=1, step=1),
        transfer.digest_of([2, 1], generation=1, step=1),
        transfer.digest_of([1, 2], generation=2, step=1),
        transfer.digest_of([1, 2], generation=1, step=2),
    }
    assert len(digests) == 4


class Custom:
    pass


def test_a_value_of_an_own_class_is_not_executed_by_the_receiver(donor: Make) -> None:
    with pytest.raises(TransferError, match="not plain values"):
        take(donor({"own": Custom()}))


def test_a_named_tuple_arrives_as_a_plain_one() -> None:
    pair = namedtuple("pair", "left right")
    assert unflatten(flatten({"both": pair(torch.ones(1), 2)}))["both"] == (torch.ones(1), 2)
