"""Modules of a model between two steps: attributes, modes, buffers, hooks, extra state, frozen parameters."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_, itemgetter
from typing import Any

import torch
from torch import Tensor, nn

from holdfast_runtime.state import hooks
from holdfast_runtime.state.values import IMMUTABLE, NotKeptError, copied, copy_into, equal, put_back
from holdfast_runtime.transfer import local

ATTRIBUTES = ""
"""Beside names of parameters and buffers, which are never empty."""
STRUCTURE = frozenset(nn.Module().__dict__) - {"training"}
_is_immutable = IMMUTABLE.issuperset


class StructureError(ValueError):
    """Parameters or modules came or went after the training began."""


@dataclass(slots=True)
class _Reader:
    name: str
    module: nn.Module
    values: dict[str, Any]
    size: int
    keys: tuple[str, ...]
    read: Callable[[dict[str, Any]], tuple[Any, ...]]
    parameters: tuple[str, ...]
    modules: tuple[int, ...]
    """Parts as objects, by their numbers."""

    @staticmethod
    def of(name: str, module: nn.Module) -> "_Reader":
        values = module.__dict__
        keys = ("training", *(key for key in values if key not in STRUCTURE and key != "training"))
        read = itemgetter(*keys) if len(keys) > 1 else lambda found: (found["training"],)
        parameters = tuple(values["_parameters"])
        return _Reader(name, module, values, len(values), keys, read, parameters, _objects(values["_modules"]))


@dataclass(slots=True)
class _Note:
    keys: tuple[str, ...]
    values: tuple[Any, ...]
    copies: dict[str, Any]
    """Of attributes that can change in place."""
    hooks: dict[str, dict[int, Any]]


@dataclass(slots=True)
class ModelNotes:
    """A model as it was when it was noted. Parameters are not in it, only which of them are trained."""

    modules: list[_Note]
    trained: list[bool]
    hooks: dict[tuple[str, str], dict[int, Any]]
    """Of the program, on parameters and on the optimizer, by name and kind."""
    buffers: dict[str, Tensor | None] = field(default_factory=dict)
    """The buffers that modules had, as objects."""
    contents: dict[str, Tensor] = field(default_factory=dict)
    """Copies of them."""
    kinds: dict[str, list[str]] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


class ModelReader:
    """
    Reads and restores all of a model but its parameters' values.

    Args:
        optimizer: Whose hooks are read with those of the model. Default: none.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> None:
        self.model = model
        self._optimizer = optimizer
        self.parameters = list(model.named_parameters())
        """By name, as they were when the training was made."""
        self._readers = [_Reader.of(name, module) for name, module in model.named_modules()]
        self._extra = [
            (reader.name, reader.module)
            for reader in self._readers
            if type(reader.module).get_extra_state is not nn.Module.get_extra_state
        ]

    def check_structure(self) -> None:
        for reader in self._readers:
            parameters, parts = reader.values["_parameters"], reader.values["_modules"]
            if tuple(parameters) != reader.parameters or _objects(parts) != reader.modules:
                came = sorted({*parameters} - {*reader.parameters}) or sorted(parts)
                gone = sorted({*reader.parameters} - {*parameters})
                raise StructureError(
                    f"module {reader.name or 'model'} ({type(reader.module).__qualname__}) has other parameters or "
                    f"parts than when Run was made (now {', '.join(came) or 'none'}"
                    + (f"; gone: {', '.join(gone)}" if gone else "")
                    + "): other ranks could not take them over; make all parts before Run, call those that come "
                    "later when it is their time, and mask weights with a buffer instead of torch.nn.utils.prune"
                )

    def modes(self) -> list[tuple[str, bool]]:
        return [(reader.name, reader.values["training"]) for reader in self._readers]

    def buffers(self) -> Iterator[tuple[str, Tensor, nn.Module]]:
        for name, buffer, module in self._registered():
            if buffer is not None:
                yield name, buffer, module

    def buffer_kinds(self) -> dict[str, list[str]]:
        """Names of buffers that are registered as None, and of those that a checkpoint leaves out."""
        return _kinds([*self._registered()])

    def set_buffer_kinds(self, kinds: Mapping[str, Collection[str]]) -> None:
        """Register the buffers of these names, and no others, as None and as not persistent."""
        for name, buffer, module in [*self._registered()]:
            if buffer is None and name not in kinds["empty"]:
                delattr(module, _key(name))
        modules = dict(self.model.named_modules())
        for name in kinds["empty"]:
            owner, _, key = name.rpartition(".")
            modules[owner]._buffers.setdefault(key, None)
        for name, _, module in self._registered():
            change = set.add if name in kinds["not persistent"] else set.discard
            change(module._non_persistent_buffers_set, _key(name))

    def _registered(self) -> Iterator[tuple[str, Tensor | None, nn.Module]]:
        for reader in self._readers:
            if found := reader.values["_buffers"]:
                for key, buffer in found.items():
                    yield f"{reader.name}.{key}" if reader.name else key, buffer, reader.module

    def note(self, before: ModelNotes | None = None, *, buffers: bool = True) -> ModelNotes:
        modules = []
        for index in range(len(self._readers)):
            reader, found = self._read(index)
            copies = {} if _is_immutable(map(type, found)) else _copies(reader.keys, found)
            own = hooks.by_kind(reader.values) if any(hooks.all_of(reader.values)) else hooks.NO_HOOKS
            modules.append(_Note(reader.keys, found, copies, own))
        trained = [parameter.requires_grad for _, parameter in self.parameters]
        others = {place: hooks.of_program(home) for place, home in self._homes() if home}
        notes = ModelNotes(modules, trained, others)
        registered = [*self._registered()] if buffers else []
        notes.kinds = _kinds(registered)
        for name, buffer, _ in registered:
            if buffer is None:
                continue
            notes.buffers[name] = buffer
            old = before.contents.get(name) if before is not None else None
            notes.contents[name] = copy_into(local(buffer), old)
        notes.extra = self.extra()
        return notes

    def extra(self) -> dict[str, Any]:
        return {name: copied(module.get_extra_state()) for name, module in self._extra}

    @torch.no_grad()
    def restore(self, notes: ModelNotes) -> None:
        for reader, note in zip(self._readers, notes.modules, strict=True):
            _restore(reader, note)
            _restore_hooks(reader.values, note.hooks)
        for (_, parameter), trained in zip(self.parameters, notes.trained, strict=True):
            if parameter.requires_grad != trained:
                parameter.requires_grad_(trained)
        self._restore_other_hooks(notes.hooks)
        for name, _, module in [*self.buffers()]:
            if name not in notes.buffers:
                module._buffers[_key(name)] = None
        modules = dict(self.model.named_modules())
        for name, kept in notes.buffers.items():
            owner, _, key = name.rpartition(".")
            modules[owner]._buffers[key] = put_back(kept, notes.contents[name])
        self.set_buffer_kinds(notes.kinds)
        self._restore_extra(notes.extra)

    def changes(self, now: ModelNotes, baseline: ModelNotes) -> dict[str, Any]:
        attributes = {}
        for reader, new, old in zip(self._readers, now.modules, baseline.modules, strict=True):
            if found := _different(new, old):
                attributes[reader.name] = found
        trained = {
            name: new
            for (name, _), new, old in zip(self.parameters, now.trained, baseline.trained, strict=True)
            if new != old
        }
        return {"attributes": attributes, "trained": trained, "extra": now.extra, "hooks": self.hook_names()}

    def attributes(self, baseline: ModelNotes) -> dict[str, dict[str, Any]]:
        """Return the attributes that are not as in the baseline, by module."""
        found = {}
        for index, old in enumerate(baseline.modules):
            reader, values = self._read(index)
            if reader.keys == old.keys and all(map(is_, values, old.values)) and not old.copies:
                continue
            if changed := _different(_Note(reader.keys, values, _copies(reader.keys, values), {}), old):
                found[reader.name] = changed
        return found

    @torch.no_grad()
    def apply(self, changes: Mapping[str, Any], baseline: ModelNotes) -> None:
        """
        Have the baseline's attributes, with changes of another process. Buffers stay.

        Raises:
            StructureError: this process has not a hook that the other one had.
        """
        self.put_attributes(changes["attributes"], baseline)
        for (name, parameter), trained in zip(self.parameters, baseline.trained, strict=True):
            required = changes["trained"].get(name, trained)
            if parameter.requires_grad != required:
                parameter.requires_grad_(required)
        self._restore_extra(changes["extra"])
        self._keep_hooks(changes["hooks"])

    @torch.no_grad()
    def put_attributes(self, changed: Mapping[str, Mapping[str, Any]], baseline: ModelNotes) -> None:
        for reader, note in zip(self._readers, baseline.modules, strict=True):
            _restore(reader, note)
            for key, value in changed.get(reader.name, {}).items():
                reader.values[key] = put_back(reader.values.get(key), value)

    def unsent(self, now: ModelNotes, baseline: ModelNotes) -> dict[str, dict[str, str]]:
        found = {}
        for reader, new, old in zip(self._readers, now.modules, baseline.modules, strict=True):
            before = dict(zip(old.keys, old.values, strict=True))
            kinds = {
                key: hooks.name_of(value)
                for key, value in zip(new.keys, new.values, strict=True)
                if type(value) not in IMMUTABLE
                and key not in new.copies
                and before.get(key) is not value
                and not isinstance(value, Tensor)
                and hooks.name_of(value) != hooks.name_of(before.get(key))
            }
            if kinds:
                found[reader.name] = kinds
        return found

    def hook_names(self) -> dict[str, list[str]]:
        return {name: [hook.text for hook in found] for name, found in self._hooks()}

    def _hooks(self) -> Iterator[tuple[str, list[hooks.Hook]]]:
        others: dict[str, list[hooks.Hook]] = {}
        for (name, kind), home in self._homes():
            if home:
                others.setdefault(name, []).extend(hooks.of_home(kind, home))
        yield from ((name, found) for name, found in others.items() if found)
        for reader in self._readers:
            if found := [*hooks.of_module(reader.values)]:
                yield reader.name, found

    def _read(self, index: int) -> tuple[_Reader, tuple[Any, ...]]:
        """Return a reader of the attributes that a module has now, and their values."""
        reader = self._readers[index]
        try:
            if len(reader.values) == reader.size:
                return reader, reader.read(reader.values)
        except KeyError:
            pass
        reader = self._readers[index] = _Reader.of(reader.name, reader.module)
        return reader, reader.read(reader.values)

    def _homes(self) -> Iterator[tuple[tuple[str, str], dict[int, Any]]]:
        for name, parameter in self.parameters:
            if parameter._backward_hooks is not None:
                yield (name, "hook"), parameter._backward_hooks
        for kind in hooks.OF_OPTIMIZERS:
            if (home := getattr(self._optimizer, kind, None)) is not None:
                yield ("optimizer", kind), home

    def _keep_hooks(self, required: Mapping[str, list[str]]) -> None:
        """Remove the program's hooks that a state has not. Raises StructureError for those that are missing here."""
        own = dict(self._hooks())
        for name in {**own, **required}:
            if missing := hooks.keep(own.get(name, []), required.get(name, [])):
                raise StructureError(
                    f"hooks.{name or 'model'}: {', '.join(missing)} where the state comes from, and not in this "
                    "process: hooks cannot be sent; register them before Run"
                )

    def _restore_other_hooks(self, noted: Mapping[tuple[str, str], dict[int, Any]]) -> None:
        for place, home in self._homes():
            if hooks.of_program(home).keys() != noted.get(place, {}).keys():
                for number in hooks.of_program(home):
                    del home[number]
                home.update(noted.get(place, {}))

    def _restore_extra(self, extra: Mapping[str, Any]) -> None:
        for name, module in self._extra:
            if name in extra:
                module.set_extra_state(put_back(None, extra[name]))


class ModuleState:
    """
    State of a module that is not the model, for ``Run(state=)``.

    Besides what ``state_dict()`` has: buffers that are not persistent, and attributes that have changed since ``Run``,
    as those of metrics that are summed up over steps.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self._reader = ModelReader(module)
        self._baseline = self._reader.note(buffers=False)

    def state_dict(self) -> dict[str, Any]:
        changed = self._reader.attributes(self._baseline)
        return {**self._left_out(), **self.module.state_dict(), **({ATTRIBUTES: changed} if changed else {})}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        left_out = self._left_out()
        for name, buffer in left_out.items():
            if name in state:
                put_back(buffer, state[name])
        own = {name: value for name, value in state.items() if name != ATTRIBUTES and name not in left_out}
        self.module.load_state_dict(own)
        self._reader.put_attributes(state.get(ATTRIBUTES, {}), self._baseline)

    def _left_out(self) -> dict[str, Tensor]:
        return {
            name: local(buffer)
            for name, buffer, module in self._reader.buffers()
            if _key(name) in module._non_persistent_buffers_set
        }


@torch.no_grad()
def put_buffers(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    modules = dict(model.named_modules())
    for prefix, module in modules.items():
        for key in module._buffers:
            if (f"{prefix}.{key}" if prefix else key) not in tensors:
                module._buffers[key] = None
    for name, tensor in tensors.items():
        owner, _, key = name.rpartition(".")
        modules[owner]._buffers[key] = put_back(modules[owner]._buffers.get(key), tensor)


def _kinds(registered: Sequence[tuple[str, Tensor | None, nn.Module]]) -> dict[str, list[str]]:
    return {
        "empty": [name for name, buffer, _ in registered if buffer is None],
        "not persistent": [name for name, _, module in registered if _key(name) in module._non_persistent_buffers_set],
    }


def _key(name: str) -> str:
    return name.rpartition(".")[2]


def _objects(parts: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(map(id, parts.values()))


def _copies(keys: tuple[str, ...], values: tuple[Any, ...]) -> dict[str, Any]:
    found = {}
    for key, value in zip(keys, values, strict=True):
        if type(value) not in IMMUTABLE:
            try:
                found[key] = copied(value)
            except NotKeptError:
                continue
    return found


def _restore(reader: _Reader, note: _Note) -> None:
    values = reader.values
    for key in [key for key in values if key not in STRUCTURE and key not in note.keys]:
        if type(values[key]) in IMMUTABLE or isinstance(values[key], Tensor):
            del values[key]
    for key, value in zip(note.keys, note.values, strict=True):
        if key in note.copies:
            values[key] = put_back(value, note.copies[key])
        elif values.get(key) is not value:
            values[key] = value


def _restore_hooks(values: dict[str, Any], noted: Mapping[str, dict[int, Any]]) -> None:
    for kind in hooks.KINDS:
        if not values[kind] and kind not in noted:
            continue
        old, now = noted.get(kind, {}), hooks.of_program(values[kind])
        for number in now.keys() - old.keys():
            del values[kind][number]
        values[kind].update(old)


def _different(new: _Note, old: _Note) -> dict[str, Any]:
    before = dict(zip(old.keys, old.values, strict=True))
    found = {}
    for key, value in zip(new.keys, new.values, strict=True):
        if key in new.copies:
            if key not in old.copies or not equal(new.copies[key], old.copies[key]):
                found[key] = new.copies[key]
        elif type(value) in IMMUTABLE and not (key in before and equal(value, before[key])):
            found[key] = value
    return found
