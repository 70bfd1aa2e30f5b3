"""
Memory of one process for shards, its own and its wards', and the server to store and fetch them.

One thread listens and one more serves each connection. Requests of another generation are refused.
"""

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast_runtime.control import listen
from holdfast_runtime.faults import Injector
from holdfast_runtime.snapshots.layout import Block, Label, Pair, SnapshotError
from holdfast_runtime.snapshots.wire import Link, label_from_json, label_to_json, proof_of, proves

MOST_STRANGERS = 32
"""Lines about callers without the token; a program that reaches the port could fill the log of the job otherwise."""

_LOG = logging.getLogger(__name__)


class Keeper:
    """
    Serves from its construction until ``close``.

    Args:
        host: address to listen at. Default: all
        deadline_s: for one visit. Default: 300
        faults: On purpose. Default: none.
    """

    def __init__(
        self,
        *,
        host: str = "",
        deadline_s: float = 300.0,
        token: str = "",
        faults: Injector | None = None,
    ) -> None:
        self._deadline_s = deadline_s
        self._token = token
        self._faults = faults or Injector()
        self._changed = threading.Condition()
        self._generation = -1
        self._closed = False
        self._pairs: dict[int, Pair] = {}
        self._busy: set[int] = set()
        self._wards: frozenset[int] = frozenset()
        self._links: set[Link] = set()
        self._strangers = 0
        self.spent_s = 0.0
        """CPU of all visits."""
        self._door = listen(host)
        self.port: int = self._door.getsockname()[1]
        threading.Thread(target=self._serve, name="snapshots-door", daemon=True).start()

    def open(self, *, generation: int, wards: Sequence[int], resume_step: int) -> None:
        with self._changed:
            for pair in self._pairs.values():
                pair.forget_after(resume_step)
            self._wards = frozenset(wards)
            self._generation = generation
            self._changed.notify_all()

    def leave(self) -> None:
        with self._changed:
            self._generation = -1
            self._wards = frozenset()
            links = list(self._links)
        for link in links:
            link.close()

    def close(self) -> None:
        self.leave()
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        with self._changed:
            self._closed = True
            self._pairs.clear()
            self._changed.notify_all()

    def held(self) -> list[tuple[int, int]]:
        with self._changed:
            return [(rank, step) for rank, pair in sorted(self._pairs.items()) for step in pair.steps()]

    @property
    def memory_bytes(self) -> int:
        with self._changed:
            return sum(len(block.data) for pair in self._pairs.values() for block in pair.blocks)

    def find(self, rank: int, step: int) -> Block | None:
        with self._changed:
            pair = self._pairs.get(rank)
            return pair.find(step) if pair else None

    def settle(self, rank: int, *, deadline_s: float) -> None:
        """Wait until nobody writes a shard of a rank. Raises SnapshotError at the deadline."""
        with self._changed:
            if not self._changed.wait_for(lambda: rank not in self._busy, deadline_s):
                raise SnapshotError(f"rank {rank}'s shard was not written within {deadline_s} s")

    def forget_others(self, ranks: Sequence[int]) -> None:
        with self._changed:
            for rank in [rank for rank in self._pairs if rank not in ranks and rank not in self._busy]:
                del self._pairs[rank]

    @contextmanager
    def writing(self, rank: int, *, keep: int) -> Iterator[Block]:
        with self._changed:
            if rank in self._busy:
                raise SnapshotError(f"a shard of rank {rank} is being written already")
            self._busy.add(rank)
            if rank not in self._pairs:
                self._pairs[rank] = Pair()
            block = self._pairs[rank].other(keep)
            block.label = None
        try:
            yield block
        finally:
            with self._changed:
                self._busy.discard(rank)
                self._changed.notify_all()

    def publish(self, block: Block, label: Label, *, generation: int) -> None:
        """Let a block be read. Raises SnapshotError when its generation is over."""
        with self._changed:
            if self._generation != generation:
                raise SnapshotError(f"generation {generation} ended while the shard was written")
            block.label = label

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._door.accept()
            except OSError:
                return
            threading.Thread(target=self._visit, args=(connection,), name="snapshots-visit", daemon=True).start()

    def _visit(self, connection: socket.socket) -> None:
        link = Link(connection, deadline_s=self._deadline_s)
        is_stranger = True
        try:
            request = self._asked(link)
            is_stranger = False
            self._admit(int(request["generation"]), link)
            if request["kind"] == "bring":
                self._take_in(link, request)
            else:
                self._hand_out(link, request)
        except SnapshotError as error:
            self._warn(f"a shard was refused: {error}", is_stranger=is_stranger)
            with contextlib.suppress(OSError):
                link.send_object({"refused": str(error)})
        except (OSError, KeyError, TypeError, ValueError) as error:
            self._warn(f"a transfer of a shard broke: {error!r}", is_stranger=is_stranger)
        finally:
            with self._changed:
                self._links.discard(link)
                self.spent_s += time.thread_time()
            link.close()

    def _warn(self, text: str, *, is_stranger: bool) -> None:
        with self._changed:
            self._strangers += is_stranger
            is_logged = not is_stranger or self._strangers <= MOST_STRANGERS
        if is_logged:
            _LOG.warning("%s", text)

    def _asked(self, link: Link) -> dict[str, Any]:
        challenge = link.greet()
        request = link.read_object()
        if not proves(request, token=self._token, challenge=challenge):
            raise SnapshotError("the proof of the run's token is wrong")
        return request

    def _admit(self, generation: int, link: Link) -> None:
        with self._changed:
            while self._generation < generation and not self._closed:
                self._changed.wait(link.left_s())
            if self._generation != generation:
                raise SnapshotError(f"generation {generation} is over here")
            self._links.add(link)

    def _take_in(self, link: Link, request: dict[str, Any]) -> None:
        label = label_from_json(request["label"])
        if label.rank not in self._wards:
            raise SnapshotError(f"rank {label.rank}'s shard is not kept here, those of {sorted(self._wards)} are")
        with self.writing(label.rank, keep=int(request["keep"])) as block:
            self._faults.point("keep", step=label.step)
            link.send_object({"go": label.digest})
            link.receive_block(block, label)
            self.publish(block, label, generation=int(request["generation"]))
        link.send_object({"kept": label.digest})

    def _hand_out(self, link: Link, request: dict[str, Any]) -> None:
        rank, step = int(request["rank"]), int(request["step"])
        block = self.find(rank, step)
        label = block.label if block else None
        if block is None or label is None:
            raise SnapshotError(f"rank {rank}'s shard of step {step} is not here; there is {self.held()}")
        answer = {"label": label_to_json(label)}
        proof = proof_of(answer, token=self._token, challenge=str(request["challenge"]))
        link.send_object({**answer, "proof": proof})
        fault = self._faults.link("hand-out", step=step)
        if fault == "cut":
            raise ConnectionError("cut on purpose")
        link.send_block(block, damaged=fault == "corrupt")


def bring(block: Block, label: Label, link: Link, *, generation: int, keep: int, token: str = "") -> None:
    """Have a shard kept by another process. Raises SnapshotError when it refuses, OSError when it is gone."""
    request = {"kind": "bring", "generation": generation, "keep": keep, "label": label_to_json(label)}
    link.ask(request, token=token)
    _expect(link, "go", label)
    link.send_block(block)
    _expect(link, "kept", label)


def _expect(link: Link, word: str, label: Label) -> None:
    answer = link.read_object()
    if answer.get(word) != label.digest:
        raise SnapshotError(str(answer.get("refused", answer)))


def fetch(block: Block, link: Link, *, generation: int, rank: int, step: int, token: str = "") -> Label:
    """Get a shard from its keeper into a block. Raises SnapshotError, OSError."""
    started = time.monotonic()
    challenge = link.ask({"kind": "fetch", "generation": generation, "rank": rank, "step": step}, token=token)
    answer = link.read_object()
    if "refused" in answer:
        raise SnapshotError(str(answer["refused"]))
    if not proves(answer, token=token, challenge=challenge):
        raise SnapshotError("the other side does not have the token of this run")
    label = label_from_json(answer.get("label"))
    if (label.rank, label.step) != (rank, step):
        raise SnapshotError(f"asked for rank {rank} at step {step}, got rank {label.rank} at step {label.step}")
    link.receive_block(block, label)
    _LOG.info("rank %d's shard of step %d came in %.3f s", rank, step, time.monotonic() - started)
    return label
