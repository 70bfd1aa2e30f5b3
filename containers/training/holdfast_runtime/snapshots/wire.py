"""
Shards on a TCP connection: a header in JSON, then the block in one piece.

The header has the CRC of each chunk. All waits end at a deadline. Both sides prove that they have the run's token.
"""

import base64
import hmac
import json
import secrets
import socket
import time
from collections.abc import Mapping
from typing import Any

from holdfast_runtime.checksums import checksum_of
from holdfast_runtime.snapshots.layout import Block, Label, Layout, SnapshotError
from holdfast_runtime.transfer import Line


class Link(Line):
    """One connection, for one exchange."""

    def __init__(self, connection: socket.socket, *, deadline_s: float) -> None:
        super().__init__(connection, deadline_s=deadline_s, stall_s=deadline_s)

    @staticmethod
    def connect(host: str, port: int, *, deadline_s: float) -> "Link":
        return Link(socket.create_connection((host, port), timeout=deadline_s), deadline_s=deadline_s)

    def close(self) -> None:
        """End the exchange, also one that another thread waits in."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            self._socket.close()
            return
        self._socket.close()

    def left_s(self) -> float:
        """Until the deadline. Raises TimeoutError when it is over."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("deadline of the transfer is over")
        return left

    def greet(self) -> str:
        challenge = secrets.token_hex(16)
        self.send_object({"challenge": challenge})
        return challenge

    def ask(self, request: Mapping[str, Any], *, token: str) -> str:
        """A request with its proof; the challenge that what comes back has to answer. Raises SnapshotError."""
        theirs, own = str(self.read_object().get("challenge", "")), secrets.token_hex(16)
        signed = {**request, "challenge": own}
        self.send_object({**signed, "proof": proof_of(signed, token=token, challenge=theirs)})
        return own

    def send_block(self, block: Block, *, damaged: bool = False) -> None:
        """
        The contents; their checksums are in the label, which was sent before.

        Args:
            damaged: On purpose, in one bit. Default: they are whole.
        """
        data = block.data.numpy()
        if damaged:
            data = data.copy()
            data[len(data) // 2] ^= 1
        self.send([data.data])

    def receive_block(self, block: Block, label: Label) -> None:
        """
        Receive the contents, checked as they come, into a block whose label is set only at the end.

        Raises:
            SnapshotError: a chunk is not what its checksum says.
        """
        label.check()
        block.clear(label.layout.size)
        chunks = block.chunks()
        if len(chunks) != len(label.checksums):
            raise SnapshotError(f"{len(label.checksums)} checksums for {len(chunks)} chunks")
        damaged = []
        for number, (chunk, checksum) in enumerate(zip(chunks, label.checksums, strict=True)):
            self.read_into([chunk])
            if checksum_of([chunk]) != checksum:
                damaged.append(number)
        if damaged:
            which = f"rank {label.rank}'s shard of step {label.step}"
            raise SnapshotError(f"{which} arrived damaged: the checksum of chunk {damaged[0]} differs")


def proof_of(message: Mapping[str, Any], *, token: str, challenge: str) -> str:
    body = json.dumps({key: value for key, value in message.items() if key != "proof"}, sort_keys=True)
    return hmac.new(token.encode(), f"snapshots {challenge} {body}".encode(), "sha256").hexdigest()


def proves(message: Mapping[str, Any], *, token: str, challenge: str) -> bool:
    return hmac.compare_digest(str(message.get("proof", "")), proof_of(message, token=token, challenge=challenge))


def label_to_json(label: Label) -> dict[str, Any]:
    return {
        "rank": label.rank,
        "step": label.step,
        "layout": label.layout.to_json(),
        "checksums": label.checksums,
        "extra": base64.b64encode(label.extra).decode(),
        "digest": label.digest,
    }


def label_from_json(value: Any) -> Label:
    try:
        return Label(
            rank=int(value["rank"]),
            step=int(value["step"]),
            layout=Layout.from_json(value["layout"]),
            checksums=tuple(map(int, value["checksums"])),
            extra=base64.b64decode(value["extra"], validate=True),
            digest=str(value["digest"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SnapshotError(f"not the label of a shard: {error!r}") from error
