"""
``runtime_program`` with a defect in it, or with one of Holdfast's safeguards taken out, as HOLDFAST_TEST_BREAK says.

Names, with commas between them: ``flip`` (one bit of a parameter of rank 1 changes in step 5), ``ahead`` (rank 1
believes that it is a step further), ``no-digest``, ``no-vote``, ``no-checksum``. The product has no such switch.
"""

import os
import runpy
import sys
from pathlib import Path
from typing import Any

import torch

from holdfast_runtime.inprocess._member import Member
from holdfast_runtime.inprocess._run import Run
from holdfast_runtime.inprocess._state import TrainingState
from holdfast_runtime.transfer import _receive

STEP = 5
PROGRAM = Path(__file__).parents[1] / "integration" / "runtime_program.py"


def flip() -> None:
    apply = Run._apply

    def apply_and_flip(run: Run) -> None:
        apply(run)
        if run.rank == 1 and run.step == STEP + 1:
            with torch.no_grad():
                next(run._state.model.parameters()).reshape(-1)[:1].view(torch.int32).bitwise_xor_(1)

    Run._apply = apply_and_flip  # type: ignore[method-assign]


def ahead() -> None:
    begin = Run._begin

    def begin_ahead(run: Run, number: int) -> None:
        begin(run, number)
        if run.rank == 1 and number == STEP and run._member is not None:
            run._member.committed_step += 1

    Run._begin = begin_ahead  # type: ignore[method-assign]


def no_digest() -> None:
    TrainingState.digest = lambda _state: 0  # type: ignore[method-assign]


def no_vote() -> None:
    Member.judge = lambda _member, _outcome: None  # type: ignore[method-assign]


def no_checksum() -> None:
    def accept(*_: Any) -> None:
        pass

    _receive._check = accept


def main() -> None:
    for name in filter(None, os.environ["HOLDFAST_TEST_BREAK"].split(",")):
        {"flip": flip, "ahead": ahead, "no-digest": no_digest, "no-vote": no_vote, "no-checksum": no_checksum}[name]()
    sys.argv[0] = str(PROGRAM)
    runpy.run_path(str(PROGRAM), run_name="__main__")


if __name__ == "__main__":
    main()
