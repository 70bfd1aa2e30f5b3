"""
State of one rank: its shards of parameters and optimizer state, buffers, and what is no tensor.

Works for FSDP2 (``fully_shard``), whose parameters are DTensors of which each rank holds a local part, and for plain
modules. Optimizer state changes only inside an update, and is copied in another thread. Everything else may change at
any time between two updates (running statistics in a forward pass, weights that are swapped for an evaluation), and is
copied before the training goes on.
"""

import io
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from holdfast_runtime.snapshots.layout import Block, SnapshotError
from holdfast_runtime.state import groups_of, put_buffers, put_groups, random_states, set_random_states
from holdfast_runtime.transfer import Flat, flatten, unflatten

PARAMETER, OPTIMIZER, BUFFER, STATE = "parameter ", "optimizer ", "buffer ", "state "


class Stateful(Protocol):
    """An object with state that the script may add: a scheduler, a data loader, a counter."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any], /) -> object: ...


@dataclass(frozen=True)
class Shard:
    """The state of one rank."""

    model: nn.Module
    optimizer: Optimizer
    extra: Mapping[str, Stateful] = field(default_factory=dict)
    """More state, by name. Default: none"""

    def steady(self) -> dict[str, Tensor]:
        found = {}
        for name, parameter in self._parameters():
            for key, value in sorted(self.optimizer.state.get(parameter, {}).items()):
                if isinstance(value, Tensor):
                    found[f"{OPTIMIZER}{key} {name}"] = _local(value)
        return found

    def weights(self) -> dict[str, Tensor]:
        return {f"{PARAMETER}{name}": _local(parameter) for name, parameter in self._parameters()}

    def buffers(self, *, persistent: bool = False) -> dict[str, Tensor]:
        kept = self.model.state_dict() if persistent else None
        buffers = self.model.named_buffers()
        return {f"{BUFFER}{name}": _local(buffer) for name, buffer in buffers if kept is None or name in kept}

    def pack(self) -> tuple[bytes, dict[str, Tensor]]:
        """Return all other state: plain values as bytes, and the tensors that are marked there, by name."""
        flat = flatten({name: item.state_dict() for name, item in self.extra.items()})
        state = {
            "groups": groups_of(self.model.named_parameters(), self.optimizer),
            "values": {
                name: {key: value for key, value in self.optimizer.state.get(parameter, {}).items() if _plain(value)}
                for name, parameter in self._parameters()
            },
            "extra": flat.skeleton,
            "random": {
                **random_states(),
                "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
            },
        }
        buffer = io.BytesIO()
        torch.save(state, buffer)
        return buffer.getvalue(), {f"{STATE}{number}": tensor for number, tensor in enumerate(flat.tensors)}

    def tensors(self) -> dict[str, Tensor]:
        return {**self.weights(), **self.steady(), **self.buffers(), **self.pack()[1]}

    @torch.no_grad()
    def load(self, block: Block) -> None:
        """
        Take over what a block holds, in place: objects stay, and tensors keep their addresses.

        Raises:
            SnapshotError: it is of another model, or of another number of ranks.
        """
        if block.label is None:
            raise SnapshotError("there is no snapshot to load")
        tensors = {entry.name: entry.of(block.data) for entry in block.label.layout.entries}
        state = torch.load(io.BytesIO(block.label.extra), weights_only=True)
        self._check(tensors, state)
        for name, tensor in self.weights().items():
            tensor.copy_(tensors[name])
        put_buffers(self.model, _starting(tensors, BUFFER))
        put_groups(self.model, self.optimizer, state["groups"])
        kept: defaultdict[str, dict[str, Tensor]] = defaultdict(dict)
        for name, tensor in _starting(tensors, OPTIMIZER).items():
            key, _, parameter_name = name.partition(" ")
            kept[parameter_name][key] = tensor
        on_device = any(group.get("fused") or group.get("capturable") for group in self.optimizer.param_groups)
        for name, parameter in self._parameters():
            device = str(_local(parameter).device) if on_device else "cpu"
            self._load_optimizer(parameter, kept[name], state["values"][name], step_device=device)
        self._load_extra(state, _starting(tensors, STATE))

    def load_extra(self, data: bytes, tensors: Mapping[str, Tensor]) -> None:
        state = torch.load(io.BytesIO(data), weights_only=True)
        self._load_extra(state, {name.removeprefix(STATE): tensor for name, tensor in tensors.items()})

    def _load_extra(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        # Of its own: a program may keep the tensors that it is given, and a block is written over.
        owned = [tensors[str(number)].clone() for number in range(len(tensors))]
        extra = unflatten(Flat(skeleton=state["extra"], tensors=owned))
        for name, item in self.extra.items():
            item.load_state_dict(extra[name])
        set_random_states(state["random"])
        if state["random"]["cuda"] is not None:
            torch.cuda.set_rng_state(state["random"]["cuda"])

    def _parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        yield from self.model.named_parameters()

    def _check(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        mine = self.weights()
        for name, tensor in mine.items():
            other = tensors.get(name)
            if other is None or other.shape != tensor.shape or other.dtype != tensor.dtype:
                there = "nothing" if other is None else f"{other.dtype} {list(other.shape)}"
                raise SnapshotError(
                    f"the snapshot has {there} for {name}, and the model has {tensor.dtype} {list(tensor.shape)}"
                )
        modules = {name for name, _ in self.model.named_modules()}
        more = [name for name in tensors if name.startswith(PARAMETER) and name not in mine]
        more += [name for name in _starting(tensors, BUFFER) if name.rpartition(".")[0] not in modules]
        if more or set(state["extra"]) != set(self.extra):
            raise SnapshotError(
                f"the snapshot is of another program: it has {', '.join(more[:3]) or 'other extra state'}"
            )

    def _load_optimizer(
        self, parameter: nn.Parameter, tensors: Mapping[str, Tensor], values: Mapping[str, Any], *, step_device: str
    ) -> None:
        """State that is not there yet, because the optimizer has never run, is made as the optimizer would make it."""
        if not tensors and not values:  # a group that has it may not be there yet
            self.optimizer.state.pop(parameter, None)
            return
        state = self.optimizer.state[parameter]
        for key in [key for key in state if key not in tensors and key not in values]:
            del state[key]
        for key, saved in tensors.items():
            if key not in state or _local(state[key]).shape != saved.shape:
                made = torch.empty_like(saved, device=step_device) if key == "step" else _like(parameter, saved)
                state[key] = made
            _local(state[key]).copy_(saved)
        state.update(values)


def _local(tensor: Tensor) -> Tensor:
    local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    return local.detach()


def _like(parameter: nn.Parameter, saved: Tensor) -> Tensor:
    """Room for optimizer state: sharded as its parameter when it has its size, otherwise a tensor of its own."""
    local = _local(parameter)
    if saved.shape != local.shape:
        return torch.empty_like(saved, device=local.device)
    room = torch.empty_like(local, dtype=saved.dtype)
    if not isinstance(parameter, DTensor):
        return room
    return DTensor.from_local(
        room,
        parameter.device_mesh,
        parameter.placements,
        run_check=False,
        shape=parameter.shape,
        stride=parameter.stride(),
    )


def _starting(tensors: Mapping[str, Tensor], kind: str) -> dict[str, Tensor]:
    return {name.removeprefix(kind): tensor for name, tensor in tensors.items() if name.startswith(kind)}


def _plain(value: Any) -> bool:
    return not isinstance(value, Tensor)
