"""
``runtime_program`` with a defect in it, or with one of Holdfast's safeguards taken out, as HOLDFAST_TEST_BREAK says.

Names, with commas between them: ``late`` (ranks other than 1 leave step 5 before the last sums of its vote arrive, once
rank 1 has them), ``flip`` (one bit of a parameter of rank 1 changes in step 5), ``ahead`` (rank 1
believes that it is a step further), ``stranger`` (the first state that is given is a wrong one, by one who does not
know the token), ``no-digest``, ``no-vote``, ``no-checksum``, ``no-proof``. The product has no such switch.
"""

import os
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from holdfast_runtime import transfer
from holdfast_runtime.inprocess import Agreement, BrokenError, TrainingState, Updates

STEP = 5
PROGRAM = Path(__file__).parents[1] / "integration" / "runtime_program.py"


def flip() -> None:
    apply = Updates.apply

    def apply_and_flip(updates: Updates) -> None:
        apply(updates)
        member = updates._member
        if member is not None and member.own.rank == 1 and updates.finished == STEP + 1:
            with torch.no_grad():
                next(updates._state.model.parameters()).reshape(-1)[:1].view(torch.int32).bitwise_xor_(1)

    Updates.apply = apply_and_flip  # type: ignore[method-assign]


def ahead() -> None:
    begin = Updates.begin

    def begin_ahead(updates: Updates, number: int) -> None:
        begin(updates, number)
        member = updates._member
        if member is not None and member.own.rank == 1 and number == STEP:
            member.own.committed_step += 1

    Updates.begin = begin_ahead  # type: ignore[method-assign]


def late() -> None:
    reduce = Updates.reduce
    left = False

    def reduce_late(updates: Updates, loss: float) -> float:
        nonlocal left
        mean = reduce(updates, loss)
        member = updates._member
        if member is not None and member.own.rank != 1 and updates.finished == STEP and not left:
            left = True
            member.peers.wait_for_leave(within_s=60.0)
            raise BrokenError("a collective failed: the last sums did not arrive")
        return mean

    Updates.reduce = reduce_late  # type: ignore[method-assign]


def stranger() -> None:
    """As who listens at the port of a donor that has died, with right checksums over a state of his own."""
    send = transfer.Server._send
    mark = Path(sys.argv[1]) / "fired" / "1.stranger"

    def send_another(server: transfer.Server, line: Any, offer: transfer.Offer, *, challenge: str) -> None:
        try:
            mark.open("x").close()
        except FileExistsError:
            send(server, line, offer, challenge=challenge)
            return
        flat = offer.state()
        other = replace(offer, state=lambda: replace(flat, tensors=[_changed(tensor) for tensor in flat.tensors]))
        token, server._token = server._token, "another"
        send(server, line, other, challenge=challenge)
        server._token = token

    transfer.Server._send = send_another  # type: ignore[method-assign]


def _changed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * 2 if tensor.is_floating_point() else tensor


def no_proof() -> None:
    patch("holdfast_runtime.transfer.receiver.hmac", SimpleNamespace(compare_digest=lambda *_: True)).start()


def no_digest() -> None:
    TrainingState.digest = lambda _state: 0  # type: ignore[method-assign]


def no_vote() -> None:
    Agreement.judge = lambda _agreement, _outcome: None  # type: ignore[method-assign]


def no_checksum() -> None:
    def accept(*_: Any) -> None:
        pass

    patch("holdfast_runtime.transfer.receiver._compare", accept).start()


def main() -> None:
    for name in filter(None, os.environ["HOLDFAST_TEST_BREAK"].split(",")):
        globals()[name.replace("-", "_")]()
    sys.argv[0] = str(PROGRAM)
    runpy.run_path(str(PROGRAM), run_name="__main__")


if __name__ == "__main__":
    main()
