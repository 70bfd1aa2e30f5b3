"""Load the state for a new generation: own copy, replica, snapshot or checkpoint."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from holdfast_runtime.control import Deadlines, View
from holdfast_runtime.faults import Injector
from holdfast_runtime.inprocess.errors import BrokenError, StoppedError
from holdfast_runtime.inprocess.member.peers import Peers, with_peers
from holdfast_runtime.inprocess.member.recutting import Recutting
from holdfast_runtime.inprocess.member.standing import Standing, Training
from holdfast_runtime.inprocess.member.telling import Telling
from holdfast_runtime.membership import UNKNOWN
from holdfast_runtime.snapshots import Checkpoints
from holdfast_runtime.transfer import Offer, Server, receive

REPLICA = "replica"


class Taking:
    """The state of this process as others have it, and theirs as it takes it."""

    def __init__(
        self, own: Standing, *, peers: Peers, reporter: Telling, deadlines: Deadlines, faults: Injector, token: str
    ) -> None:
        self.training: Training | None = None
        """None until the script has made its model."""
        self.finish_update: Callable[[], None] = lambda: None
        """Does the update after the committed step, where this process has all that it takes."""
        self.warm_up: Callable[[], None] = lambda: None
        """Has memory for gradients and the optimizer's state, before there is a rank and a state."""
        self._own = own
        self._peers = peers
        self._reporter = reporter
        self._deadlines = deadlines
        self._faults = faults
        self._token = token
        self._server = Server(token=token, faults=faults, deadline_s=deadlines.transfer)
        self.recutting = Recutting(
            own,
            peers=peers,
            reporter=reporter,
            server=self._server,
            deadlines=deadlines,
            faults=faults,
            token=token,
            use_own=self.use_own,
        )

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def made(self) -> Training:
        assert self.training is not None
        return self.training

    def newest_checkpoint(self) -> int:
        """Its step; -1 without one."""
        if self.training is None:
            return UNKNOWN
        return self.training.tier.newest_step() if self.training.tier is not None else -1

    def offer(self, view: View) -> None:
        if view.plan.cut:
            return
        state = cache(self.made.state.flat)
        if view.plan.receivers:
            _ = state().skeleton_bytes  # somebody is about to ask, and all others wait for that
        self._server.offer(REPLICA, Offer(generation=view.generation, step=view.resume_step, state=state))

    def withdraw(self) -> None:
        self._server.withdraw(REPLICA)
        self.recutting.withdraw()

    def use_own(self, step: int) -> bool:
        own = self._own
        if own.validity != "valid":
            return False
        if own.prepared and own.committed_step + 1 == step:
            self.finish_update()
            return True
        own.prepared = False
        if own.committed_step == step:
            self.made.state.put_back()
            return True
        return False

    def take(self, view: View) -> None:
        """Have the state of a view, as far as it can be had before the ranks are connected. Raises BrokenError."""
        own, made, source = self._own, self.made, view.plan.source
        if source == "parts":
            self.recutting.take(view, made)
            return
        if source in ("memory", "buddy"):
            if source == "memory" and self.use_own(view.resume_step):
                return
            if made.kept is None:
                raise BrokenError(f"this process has step {own.committed_step}, and not {view.resume_step}")
            self._reporter.progress("copy")
            own.validity, own.prepared = "torn", False
            with with_peers("the snapshot did not arrive"):
                made.kept.restore(view.resume_step, view.plan.donors)
            own.committed_step, own.validity = view.resume_step, "valid"
            return
        own.prepared = False
        if source == "checkpoint" and made.stored is not None:
            own.validity = "torn"  # it is loaded by all ranks together
            return
        if source == "fresh":
            if own.validity == "torn":
                raise StoppedError("this process has no whole state: all begin again", 1)
            # Rank 0's parameters come when all are connected. Until that is confirmed there is nothing to count on.
            own.committed_step, own.validity = view.resume_step, "none"
            return
        self._reporter.progress("copy")
        own.validity = "torn"
        if source == "checkpoint":
            self._load_checkpoint(view)
        else:
            self._receive(view)
        own.committed_step, own.validity = view.resume_step, "valid"

    def take_stored(self, view: View) -> None:
        made = self.made
        if made.stored is None:
            return
        with with_peers("the checkpoints could not be looked at"):
            made.stored.join(agree=self._peers.smallest)
            if view.plan.source == "checkpoint":
                self._reporter.progress("copy")
                made.stored.load(view.resume_step)
        if view.plan.source == "checkpoint":
            self._own.committed_step = view.resume_step

    def save_stored(self, *, last: bool) -> None:
        """
        Begin to write a sharded checkpoint, on all ranks after the same update.

        Args:
            last: Nothing follows: wait for it, and for nobody who is lost meanwhile.

        Raises:
            BrokenError: a rank is gone.
        """
        stored = self.made.stored
        assert stored is not None
        try:
            with with_peers("the checkpoint was not begun"):
                stored.save(self._own.committed_step)
            if last:
                stored.wait()
        except BrokenError:
            if not last:
                raise

    def _receive(self, view: View) -> None:
        places = self.made.state.receivers()

        def place(number: int, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor | None:
            own = places[number] if number < len(places) else None
            return own if own is not None and own.dtype == dtype and tuple(own.shape) == shape else None

        with with_peers("the state did not arrive"):
            flat = receive(
                [(view.hosts[donor], view.ports[donor]) for donor in view.plan.donors],
                generation=view.generation,
                step=view.resume_step,
                into=place,
                token=self._token,
                deadline_s=self._deadlines.transfer,
                check=self._peers.check,
                faults=self._faults,
            )
        self.made.state.load(flat, rank=view.rank)

    def _load_checkpoint(self, view: View) -> None:
        tier = self.made.tier
        if tier is None or isinstance(tier, Checkpoints):
            raise BrokenError("the view asks for a checkpoint and this script has none")
        self.made.state.load_tree(tier.load(view.resume_step, rank=view.rank), rank=view.rank)
