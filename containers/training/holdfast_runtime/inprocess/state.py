"""
The state of a training: model, optimizer, scheduler, what the script adds, and what a loop changes around a step.

A step that is done again, perhaps by another process, has to be the same step. So random numbers start from a function
of seed, step and rank, and all that a step or the code around it can change is noted when the step begins. When it
begins again, after the loop's body has run once more, it is put back: here, or by a process that has received it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from holdfast_runtime.groups import private
from holdfast_runtime.inprocess.digest import digest_of
from holdfast_runtime.inprocess.errors import DivergenceError
from holdfast_runtime.inprocess.tensors import (
    MOST_BYTES,
    as_held,
    check_sendable,
    copy_of,
    keep_kinds,
    put_parameters,
    read_values,
    same_buffer,
    same_values,
    seed_generators,
    version_of,
)
from holdfast_runtime.snapshots import Shard, Stateful
from holdfast_runtime.state import (
    AnyGenerator,
    GeneratorState,
    ModelNotes,
    ModelReader,
    ModuleState,
    Noted,
    OptimizerAttributes,
    Path,
    Schedulers,
    StructureError,
    groups_of,
    inner_optimizers,
    leaves,
    named,
    note_groups,
    put_buffers,
    put_groups,
    replaced,
    restore_groups,
    switch_back,
    switched,
)
from holdfast_runtime.transfer import Flat, flatten, local, unflatten

BUFFERS = "buffers"
SMALL_BYTES = 1 << 16
SKIPPED = ("begun", "by rank", "loss", "settled", "state")
"""Parts of ``rest`` that are compared in another way, or that ranks do not have alike."""
RECEIVED = "received by newcomers: "
"""In front of a name in ``state=``: positions of a framework, which count in ways of their own and are not compared."""


class _Rest:
    def __init__(self, state: "TrainingState") -> None:
        self._state = state

    def state_dict(self) -> dict[str, Any]:
        return self._state.rest()

    def load_state_dict(self, rest: dict[str, Any], /) -> None:
        self._state.load_rest(rest)


@dataclass
class _Notes:
    model: ModelNotes
    rest: Flat
    """Schedulers, ``state=`` and switches, with copies of all tensors."""
    groups: Noted
    attributes: dict[str, Any]
    """Of the optimizer."""
    versions: list[tuple[int, int]]
    """Address and version of each parameter."""
    parameters: list[Tensor] | None
    """Copies of the parameters; None where none was made."""


@dataclass(frozen=True)
class _Received:
    rest: Flat
    parameters: list[Tensor]
    buffers: dict[str, Tensor]
    moments: dict[Any, dict[str, Any]]
    """The optimizer's state, by parameter: the tensors that the optimizer has."""
    versions: list[tuple[int, int]]
    """Address and version of these tensors."""


class TrainingState:
    """
    All of it, as one tree.

    Raises:
        ValueError: the optimizer, or the script's part, cannot be sent to another process.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        scheduler: Stateful | None,
        added: Mapping[str, Stateful | AnyGenerator],
    ) -> None:
        self.seed = torch.initial_seed() & 0x7FFF_FFFF_FFFF_FFFF
        self.model = model
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.added = {name: _stateful(item) for name, item in added.items()}
        self.left_last = -1
        """The step that this process has left last, behind which the loop's body has run; -1 for none."""
        self.number = 0
        """Updates of the state that is here."""
        self.by_rank: set[str] = set()
        """Names of values in ``rest`` that each rank has of its own."""
        self._of_ranks: dict[int, list[bytes]] = {}
        """Those of all ranks, by the number of updates; of the last two votes. Read only where a rank is lost."""
        self._reader = ModelReader(model, optimizer)
        self._attributes = OptimizerAttributes(optimizer)
        known = [*map(_of_program, self.added.values()), *([scheduler] if scheduler is not None else [])]
        self._schedulers = Schedulers(optimizer, known=known)
        """Those of the program that were not given to ``Run``."""
        self._baseline: ModelNotes | None = None
        """The model before the first step of this process: what of it has changed since is sent."""
        self._notes: _Notes | None = None
        """Of the step that runs, until its update."""
        self._boundary: _Notes | None = None
        """Of the moment before the program's work between two steps, until the next update or the end of the loop."""
        self.loss: float | None = None
        """Mean of all ranks in the newest committed step; None where this rank has not seen it."""
        self.settled = 0
        """Updates at the end of the last loop: what the program does behind it is done."""
        self._old_notes: _Notes | None = None
        """Whose memory new copies are made in."""
        self._received: _Received | None = None
        """A state of another process, until the next step can begin."""
        self._at_update: tuple[list[tuple[str, bool]], dict[str, Any]] = [], {}
        """Modes of all modules and settings of torch, as the last update left them."""
        self._group_sizes: list[int] = []
        self._frozen = [
            (name, parameter) for name, parameter in model.named_parameters() if not parameter.requires_grad
        ]
        self.reduces = False
        """Whether gradients are added up here, those of the parameters that are trained when Run is made."""
        self._changes_parameters = False
        """Whether the program was seen to change parameters in a step before its update."""
        self._check_parts()

    @property
    def on_gpu(self) -> bool:
        """True if some parameter of the model is."""
        return any(parameter.is_cuda for parameter in self.model.parameters())

    def objects(self) -> list[object]:
        """Return what of the program is kept here."""
        return [self.model, self.optimizer, *map(_of_program, self.added.values())]

    def seed_step(self, *, step: int, rank: int) -> None:
        seed_generators(self.seed, step, rank)

    def seed_update(self, *, step: int) -> None:
        """The same on all ranks: replicas that draw in their update, as for stochastic rounding, stay equal."""
        seed_generators(self.seed, step)

    def seed_after_update(self, *, step: int, rank: int) -> None:
        seed_generators(self.seed, step, rank, 2)

    def seed_between(self, *, step: int, rank: int) -> None:
        seed_generators(self.seed, step, rank, 1)

    def note_first(self) -> ModelNotes:
        if self._baseline is None:
            self._baseline = self._reader.note(buffers=False)
        return self._baseline

    def reach_boundary(self) -> None:
        baseline = self.note_first()
        if self._received is None:
            return
        received, self._received = self._received, None
        if _versions(received.moments) != received.versions:
            raise DivergenceError(
                "the optimizer's state was changed in place in front of the first step of a process that has received "
                "it; load it before Run, or clear it with optimizer.state.clear()"
            )
        self.optimizer.state.clear()
        self.optimizer.state.update(received.moments)
        put_parameters([*self._parameters()], received.parameters)
        rest = unflatten(received.rest)
        with torch.no_grad():
            put_buffers(self.model, received.buffers)
            self._reader.set_buffer_kinds(rest["buffer kinds"])
            if rest["model"] is not None:
                self._reader.apply(rest["model"], baseline)
            self._put_rest(rest)
            put_groups(self.model, self.optimizer, rest["optimizer"]["param_groups"])
            self._attributes.apply(rest["optimizer"].get("attributes", {}))
        switch_back(rest["torch"])
        if rest["begun"]:
            self._notes = self._note()
            self._notes.parameters = received.parameters

    def begin(self, number: int) -> None:
        self.number = number
        # Casts of parameters that autocast without a block keeps: of a step that was left, or of older parameters.
        torch.clear_autocast_cache()
        if self._notes is not None:
            self.put_back()
        self._notes = self._note()

    def begin_between(self) -> None:
        """The program is about to work between two steps: a rank that is lost in it leads back to here."""
        if self._boundary is None:
            self._boundary = self._note(apart=True)

    def end_between(self) -> None:
        if self._boundary is not None and not self._changes_parameters:
            self._changes_parameters = bool(self._moved(self._boundary))

    def end_loop(self, number: int) -> None:
        """The program has left a loop, after so many updates: nothing leads back into it."""
        self.settled, self._boundary = max(self.settled, number), None

    def committed(self, *, loss: float | None = None) -> None:
        self.loss = loss
        self.number += 1
        self._boundary = None
        self._at_update = self._reader.modes(), switched()
        if self._notes is not None:
            self._old_notes, self._notes = self._notes, None
            self._old_notes.parameters = None

    def changed_mode(self) -> str:
        """Return a sentence on a mode of a module or of torch that is not as it was at the update; empty for none."""
        modes, settings = self._at_update
        for (name, now), (_, mode) in zip(self._reader.modes(), modes, strict=True):
            if now != mode:
                return f"{named(('model', name))}.training is {now}, and was {mode} at the update"
        for name, value in switched().items():
            if value != settings[name]:
                return f"{name} of torch is {value}, and was {settings[name]} at the update"
        return ""

    def changed_parameter(self) -> str:
        """Return the name of a parameter that the step has changed, of which there is no copy; empty for none."""
        notes = self._boundary or self._notes
        if notes is None or notes.parameters is not None:
            return ""
        return self._moved(notes)

    def before_update(self) -> None:
        """The step is about to change parameters: see whether the program has done so itself, as a swap for an
        evaluation does. From then on copies are made when a step begins."""
        if self._notes is not None and not self._changes_parameters:
            self._changes_parameters = bool(self._moved(self._notes))

    def put_back(self) -> None:
        notes = self._boundary or self._notes
        if notes is None:
            return
        if notes is self._boundary:
            self._notes = None
        with torch.no_grad():
            self._reader.restore(notes.model)
            if notes.parameters is None:
                notes.parameters = [local(parameter).clone() for _, parameter in self._reader.parameters]
            else:
                put_parameters([parameter for _, parameter in self._reader.parameters], notes.parameters)
            rest = unflatten(copy_of(notes.rest))
            self._put_rest(rest)
            restore_groups(self.optimizer, notes.groups)
            self._attributes.restore(notes.attributes)
        switch_back(rest["torch"])

    def forget(self) -> None:
        notes = self._notes
        if notes is not None:
            notes.parameters = []
            self.put_back()
        self._notes = None
        for optimizer in (self.optimizer, *inner_optimizers(self.optimizer)):
            optimizer.state.clear()
        for parameter in self.model.parameters():
            parameter.grad = None

    def shard(self) -> Shard:
        return Shard(self.model, self.optimizer, {"training": _Rest(self)})

    def check_structure(self) -> None:
        self._reader.check_structure()
        for name, parameter in self._frozen if self.reduces else ():
            if parameter.requires_grad:
                raise StructureError(
                    f"parameter {name} has requires_grad now, and had not when Run was made: its gradients would not "
                    "be added up over the ranks; make Run while all parameters that are ever trained have requires_grad"
                )
        sizes = [len(group["params"]) for group in self.optimizer.param_groups]
        if sizes != self._group_sizes:
            groups_of(self._reader.parameters, self.optimizer)
            self._group_sizes = sizes

    def changed_buffers(self) -> list[tuple[str, bool]]:
        before = self._notes.model.contents if self._notes is not None else {}
        return [(name, not same_buffer(buffer, before.get(name))) for name, buffer, _ in self._reader.buffers()]

    def buffers(self) -> dict[str, Tensor]:
        return {name: local(buffer) for name, buffer, _ in self._reader.buffers()}

    def shared_buffers(self) -> dict[Path, Any]:
        paths = {(BUFFERS, name): buffer for name, buffer in self.buffers().items()}
        return {path: buffer for path, buffer in paths.items() if named(path) not in self.by_rank}

    def put_buffers(self, tensors: Mapping[str, Tensor]) -> None:
        put_buffers(self.model, tensors)

    def digest(self) -> int:
        return digest_of(map(local, self.model.parameters()))

    def rest(self) -> dict[str, Any]:
        """
        Return all but the tensors of model and optimizer, as it is now; tensors in it are those in use.

        ``begun`` is True where it is the state with which a step begins, so that the code before the step is in it.
        """
        if self._received is not None:
            return dict(unflatten(self._received.rest))  # what is in use has not taken all of it over yet
        changes = None
        if self._baseline is not None:
            changes = self._reader.changes(self._reader.note(buffers=False), self._baseline)
        return {
            "begun": self._notes is not None,
            "model": changes,
            "optimizer": {
                "param_groups": groups_of(self._reader.parameters, self.optimizer),
                "attributes": self._attributes.changes(),
            },
            **self._plain_parts(),
            "seed": self.seed,
            "by rank": sorted(self.by_rank),
            "settled": self.settled,
            "loss": self.loss,
            "buffer kinds": self._reader.buffer_kinds(),
        }

    def facts(self, *, whole: bool, model: Literal["", "attributes", "all"], added: bool) -> dict[Path, Any]:
        """
        Return what ranks must have alike besides parameters and buffers, as it is now, by path.

        Args:
            model: What is in it besides ``state=``: nothing, attributes and extra state of modules, or all.
        """
        tree: dict[str, Any] = {}
        if model == "all" and self._baseline is not None:
            now = self._reader.note(buffers=False)
            tree = {key: value for key, value in self.rest().items() if key not in SKIPPED}
            tree["objects"] = self._reader.unsent(now, self._baseline)
        elif model == "attributes" and self._baseline is not None:
            tree = {"model": {"attributes": self._reader.attributes(self._baseline), "extra": self._reader.extra()}}
        if added:
            kept = {name: item for name, item in self.added.items() if not name.startswith(RECEIVED)}
            tree["state"] = {name: unflatten(flatten(item.state_dict())) for name, item in kept.items()}
        return {
            path: value
            for path, value in leaves(tree)
            if not (self.by_rank and named(path) in self.by_rank)
            and (whole or path[:1] != ("state",) or not _is_large(value))
        }

    def own_values(self) -> dict[Path, Any]:
        kept: dict[str, Any] = {BUFFERS: self.buffers()}
        if not all(name.startswith(f"{BUFFERS}.") for name in self.by_rank):
            kept |= self.rest()  # reads the whole model, which buffers alone do not need with each vote
        return {path: value for path, value in leaves(kept) if named(path) in self.by_rank}

    def note_own_buffers(self, names: Iterable[str]) -> None:
        self.by_rank |= {named((BUFFERS, name)) for name in names}

    def keep_of_ranks(self, step: int, values: list[bytes]) -> None:
        """Keep what ``packed_values`` makes of each rank's own values."""
        kept = {number: each for number, each in self._of_ranks.items() if number >= step - 1}
        self._of_ranks = {**kept, step: values}

    def load_rest(self, rest: dict[str, Any]) -> None:
        self._notes = self._boundary = None
        self.settled, self.loss = rest.get("settled", 0), rest.get("loss")
        self.by_rank |= {*rest["by rank"]}
        self.seed = rest["seed"]
        if self.scheduler is not None:
            self.scheduler.load_state_dict(unflatten(copy_of(flatten(rest["scheduler"]))))
        flat = copy_of(flatten(rest))
        for name, item in self.added.items():
            _load(item, unflatten(copy_of(flatten(rest["state"][name]))))
        moments = {parameter: dict(values) for parameter, values in self.optimizer.state.items()}
        self._received = _Received(
            rest=flat,
            parameters=[local(parameter).clone() for parameter in self._parameters()],
            buffers={name: buffer.clone() for name, buffer in self.buffers().items()},
            moments=moments,
            versions=_versions(moments),
        )

    def tree(self) -> dict[str, Any]:
        received = self._received
        parameters = received.parameters if received is not None else [*map(local, self._parameters())]
        return {
            "model": dict(zip((name for name, _ in self.model.named_parameters()), parameters, strict=True)),
            "optimizer": self._optimizer_tree(),
            BUFFERS: received.buffers if received is not None else self.buffers(),
            "rest": self.rest(),
            "ranks": self._values_of_ranks(),
        }

    def _optimizer_tree(self) -> dict[str, Any]:
        tree: dict[str, Any] = self.optimizer.state_dict()
        if self._received is None or inner_optimizers(self.optimizer):
            return tree
        numbered = enumerate(parameter for group in self.optimizer.param_groups for parameter in group["params"])
        moments = self._received.moments
        return {**tree, "state": {number: moments[each] for number, each in numbered if each in moments}}

    def _values_of_ranks(self) -> list[dict[Path, Any] | None]:
        values = [*map(read_values, self._of_ranks.get(self.number, []))]
        known = [each for each in values if each is not None]
        own = self.own_values() if known else {}
        return values if not known or any(same_values(each, own) for each in known) else []

    def flat(self) -> Flat:
        return flatten(self.tree())

    def places(self) -> list[Tensor]:
        return [*map(local, self._parameters()), *self.buffers().values()]

    def receivers(self) -> list[Tensor]:
        """
        Parameters, and tensors of the optimizer as far as it has state, in the order in which ``flat`` has them.

        Received values may be put into them: ``load`` takes them as they are.
        """
        model = {name: local(parameter) for name, parameter in self.model.named_parameters()}
        return flatten({"model": model, "optimizer": self.optimizer.state_dict()}).tensors

    @torch.no_grad()
    def load(self, flat: Flat, *, rank: int = 0) -> None:
        """Take over a state for a rank. Raises KeyError or ValueError when it is of another program."""
        self.load_tree(unflatten(flat), rank=rank)

    @torch.no_grad()
    def load_tree(self, tree: dict[str, Any], *, rank: int = 0) -> None:
        """
        Take over a state for a rank.

        Raises:
            KeyError, ValueError: it is of another program.
            DivergenceError: the rank had values of its own, and they are lost.
        """
        rest, buffers = tree["rest"], tree[BUFFERS]
        if rest["by rank"]:
            values = tree["ranks"][rank] if rank < len(tree["ranks"]) else None
            if values is None:
                names = ", ".join(rest["by rank"][:3])
                way = (
                    f"ranks hold at most {MOST_BYTES >> 20} MiB for each other; make it equal on all ranks, or smaller"
                    if rank < len(tree["ranks"])
                    else "make it a function of run.seed, step.number and run.data_rank, or change it before "
                    "step.update"
                )
                raise DivergenceError(
                    f"{names} differs by rank, and the value of rank {rank} was lost with its process; {way}"
                )
            rest = replaced({**rest, BUFFERS: buffers}, values, names={*rest["by rank"]})
            buffers = rest.pop(BUFFERS)
        own = {name: local(parameter) for name, parameter in self.model.named_parameters()}
        if own.keys() != tree["model"].keys():
            different = sorted(own.keys() ^ tree["model"].keys())
            raise ValueError(f"the state is of another model: {', '.join(different[:3])} only on one side")
        for name, tensor in own.items():
            if tensor.data_ptr() != tree["model"][name].data_ptr():
                tensor.copy_(tree["model"][name])
        put_buffers(self.model, buffers)
        put_groups(self.model, self.optimizer, rest["optimizer"]["param_groups"])
        self.optimizer.load_state_dict(tree["optimizer"])
        keep_kinds(self.optimizer, tree["optimizer"].get("state", {}))
        self.load_rest(rest)

    def _parameters(self) -> Iterator[nn.Parameter]:
        return self.model.parameters()

    def _plain_parts(self) -> dict[str, Any]:
        return {
            "scheduler": self.scheduler.state_dict() if self.scheduler is not None else {},
            "schedulers": [item.state_dict() for item in self._schedulers.all()],
            "torch": switched(),
            "state": {name: item.state_dict() for name, item in self.added.items()},
        }

    def _note(self, *, apart: bool = False) -> _Notes:
        old, parameters = None if apart else self._old_notes, self._reader.parameters
        return _Notes(
            model=self._reader.note(old.model if old is not None else None),
            rest=copy_of(flatten(self._plain_parts()), old.rest.tensors if old is not None else ()),
            groups=note_groups(self.optimizer),
            attributes=self._attributes.note(),
            versions=[version_of(parameter) for _, parameter in parameters],
            parameters=[local(p).clone() for p in self._parameters()] if self._changes_parameters else None,
        )

    def _moved(self, notes: _Notes) -> str:
        for (name, parameter), before in zip(self._reader.parameters, notes.versions, strict=True):
            if version_of(parameter) != before:
                return name
        return ""

    def _put_rest(self, rest: Mapping[str, Any]) -> None:
        schedulers = self._schedulers.all()
        if len(schedulers) != len(rest["schedulers"]):
            raise ValueError(
                f"this process has {len(schedulers)} schedulers of torch that were not given to Run, and the state has "
                f"{len(rest['schedulers'])}; give them to Run(state=...)"
            )
        for item, state in zip(schedulers, rest["schedulers"], strict=True):
            item.load_state_dict(state)
        if self.scheduler is not None:
            self.scheduler.load_state_dict(rest["scheduler"])
        for name, item in self.added.items():
            _load(item, rest["state"][name])

    def _check_parts(self) -> None:
        own: dict[str, Stateful] = {"optimizer": self.optimizer}
        if self.scheduler is not None:
            own["scheduler"] = self.scheduler
        for name, item in (*own.items(), *self.added.items()):
            check_sendable(name, item)


def _stateful(item: Stateful | AnyGenerator) -> Stateful:
    if isinstance(item, AnyGenerator):
        return GeneratorState(item)
    return ModuleState(item) if isinstance(item, nn.Module) else item


def _of_program(item: Stateful) -> object:
    return item.module if isinstance(item, ModuleState) else item


def _versions(moments: Mapping[Any, Mapping[str, Any]]) -> list[tuple[int, int]]:
    return [version_of(value) for kept in moments.values() for value in kept.values() if isinstance(value, Tensor)]


def _is_large(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray) and value.nbytes > SMALL_BYTES


def _load(item: Stateful, state: dict[str, Any]) -> None:
    item.load_state_dict(as_held(state, item.state_dict()))
    if isinstance(item, torch.amp.GradScaler) and item.is_enabled():
        private.forget_unscaled(item)
