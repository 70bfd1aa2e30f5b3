"""Comparison of ranks at the start of a generation."""

import json
import os
from collections.abc import Callable, Iterable, Sequence

import torch
import torch.distributed as dist

from holdfast_runtime.control import Survives, View
from holdfast_runtime.groups import UnsupportedError
from holdfast_runtime.inprocess.errors import BrokenError, DivergenceError
from holdfast_runtime.inprocess.member.peers import Peers, with_peers
from holdfast_runtime.inprocess.member.standing import Standing, Training
from holdfast_runtime.inprocess.member.telling import Telling
from holdfast_runtime.inprocess.member.variables import Variables
from holdfast_runtime.inprocess.reduction import vote
from holdfast_runtime.sharded import (
    Facts,
    RankPlace,
    Sharded,
    disagreement,
    exchange,
    gathered,
    gathered_bytes,
    survives,
    twins,
)


class Agreement:
    """
    Facts that ranks exchange in a generation, and their checks.

    Args:
        kept: Objects of the program whose state each process has.
    """

    def __init__(self, own: Standing, *, peers: Peers, reporter: Telling, kept: Callable[[], Iterable[object]]) -> None:
        self._own = own
        self._peers = peers
        self._reporter = reporter
        self.variables = Variables(kept)

    def meet(self, view: View, sharded: Sharded, made: Training) -> None:
        """All ranks tell what they have, and see whether they can train together. Raises UnsupportedError."""
        kept = made.kept
        facts = Facts(
            node=int(os.environ.get("HOLDFAST_NODE", "0")),
            host=view.hosts[view.rank],
            keeper=kept.port if kept is not None else 0,
            every=kept.every if kept is not None else -1,
            held=tuple(kept.held()) if kept is not None else (),
            groups=sharded.recorded.digest(),
            holds=f"{sharded.holds} of rank {view.rank}" if sharded.has_large_values else sharded.holds,
            torch=torch.__version__,
            rack=os.environ.get("HOLDFAST_RACK", ""),
        )
        with with_peers("not all ranks have reported their state"):
            all_facts = exchange(self._reporter.store("meet"), facts, rank=view.rank, world_size=view.world_size)
        if problem := disagreement(all_facts):
            raise UnsupportedError(problem)
        sharded.twins = twins(all_facts, view.rank)
        sharded.some_have_twins = len({each.holds for each in all_facts}) < len(all_facts)
        if kept is not None:
            cut = view.world_size if made.elastic else 0
            place = RankPlace(rank=view.rank, generation=view.generation, resume_step=view.resume_step, cut=cut)
            kept.join(all_facts, place, agree=self._peers.smallest)
        found = survives(all_facts, snapshots=kept is not None and kept.needed)
        if view.plan.source == "fresh" and (problem := found.refusal(made.survive)):
            raise UnsupportedError(problem)
        self._reporter.send(Survives(sentence=str(found), reach=found.reach, short=found.short))

    def begin_equal(self, made: Training) -> None:
        """Rank 0's seed and first parameters, for all. Raises BrokenError."""
        seed = torch.tensor(made.state.seed, device=self._peers.device)
        for tensor in (seed, *made.state.places()):
            with with_peers("the first parameters did not arrive"):
                self._peers.wait(dist.broadcast(tensor, src=0, async_op=True))
        made.state.seed = int(seed)

    def confirm(self, made: Training, *, digest: int | None) -> None:
        """
        All ranks are here, at the same step and with the same parameters.

        Args:
            digest: Of this rank's parameters; None where it is not known yet.
        """
        own = self._own
        if own.world_size == 1:
            return
        tail = torch.zeros(vote.LENGTH, dtype=torch.float32, device=self._peers.device)
        digest = made.state.digest() if digest is None else digest
        vote.cast(tail, step=own.committed_step, digest=0 if made.sharded is not None else digest, loss=0.0)
        with with_peers("the ranks could not be compared"):
            self._peers.wait(dist.all_reduce(tail, async_op=True))
            # One that has an older state does not know which values were seen to differ since.
            state = made.state
            changed = self.variables.changed()
            own_part = [sorted(state.by_rank), self._reporter.total, state.settled, state.loss, changed]
            known = json.dumps(own_part).encode()
            answers = [json.loads(each) for each in gathered_bytes(known, wait=self._peers.wait)]
            if made.sharded is not None:
                digests = gathered(digest, world_size=own.world_size, wait=self._peers.wait)
        names, totals, settled, losses, variables = zip(*answers, strict=True)
        self.variables.of_others = variables
        state.by_rank |= {name for each in names for name in each}
        own.asked, state.settled = max(totals), max(settled)
        state.loss = next((loss for loss in losses if loss is not None), None)
        self.judge(vote.count(tail, world_size=own.world_size))
        if made.sharded is not None:
            self.compare(digests, twins=made.sharded.twins)

    def compare(self, digests: Sequence[int], *, twins: Sequence[int]) -> None:
        """Return True if twins are equal, of digests by rank. Raises DivergenceError."""
        own = self._own
        odd = [twin for twin in twins if digests[twin] != digests[own.rank]]
        if odd:
            start = "at the start; seed all ranks the same before the model is made" if not own.committed_step else ""
            raise DivergenceError(
                f"ranks {own.rank} and {odd[0]} have the same part of the model, and their parameters are different "
                + (start or f"at step {own.committed_step}")
            )

    def judge(self, outcome: vote.Outcome) -> None:
        own = self._own
        if outcome.ready != own.world_size:
            raise BrokenError(f"{outcome.ready} of {own.world_size} ranks are ready")
        if not outcome.same_step:
            raise DivergenceError(f"ranks are at different steps; rank {own.rank} is at {own.committed_step}")
        if not outcome.same_digest:
            raise DivergenceError(f"the parameters of the ranks are different at step {own.committed_step}")
