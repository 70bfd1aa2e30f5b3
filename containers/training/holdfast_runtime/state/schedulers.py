"""Learning rate schedulers of a program that were not given to ``Run``."""

import gc
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from holdfast_runtime.state.modules import StructureError


class Schedulers:
    """
    The schedulers of torch that step an optimizer, in an order that is the same in each process.

    Making one looks through all objects of the process, which takes tens of milliseconds; later ones are noticed when
    they are made. Objects that were frozen (``gc.freeze``) before are not found.

    Args:
        known: Objects whose state is kept in another way; their parts are left out too.
    """

    def __init__(self, optimizer: Optimizer, *, known: Iterable[object]) -> None:
        self._optimizer = optimizer
        self._known = list(known)
        self._made: list[weakref.ref[Any]] = [weakref.ref(item) for item in _holders(optimizer)]
        _watch(self._note)

    def all(self) -> list[Any]:
        """
        Return those that no other one steps.

        Raises:
            StructureError: two of one class, which no other process could tell apart; two that hold each other.
        """
        known = {id(each) for item in self._known for each in (item, *_parts(item))}
        made = [item for ref in self._made if (item := ref()) is not None and id(item) not in known]
        for item in made:
            if any(part is item for part in _parts(item)):
                raise StructureError(
                    f"the scheduler {type(item).__qualname__} holds one that holds it, so the one that steps the other "
                    'is not known; give it to Run(state={"scheduler": ...})'
                )
        inner = {id(part) for item in made for part in _parts(item)}
        outer = sorted((item for item in made if id(item) not in inner), key=lambda item: type(item).__qualname__)
        kinds = [type(item).__qualname__ for item in outer]
        if len(set(kinds)) != len(kinds):
            raise StructureError(
                f"{len(kinds)} schedulers change the optimizer ({', '.join(kinds)}) and two have the same class; give "
                'all of them to Run(state={"first": ..., "second": ...})'
            )
        return outer

    def _note(self, scheduler: Any) -> None:
        if getattr(scheduler, "optimizer", None) is self._optimizer:
            self._made.append(weakref.ref(scheduler))


_notified: list[weakref.WeakMethod[Callable[[Any], None]]] = []


def _watch(notify: Callable[[Any], None]) -> None:
    if not _notified:
        for kind in (LRScheduler, ReduceLROnPlateau):
            kind.__init__ = _noting(kind.__init__)  # type: ignore[method-assign]
    _notified.append(weakref.WeakMethod(notify))


def _noting(real: Callable[..., None]) -> Callable[..., None]:
    def made(self: Any, *arguments: Any, **options: Any) -> None:
        real(self, *arguments, **options)
        for each in _notified:
            if (notify := each()) is not None:
                notify(self)

    return made


def _holders(optimizer: Optimizer) -> list[Any]:
    holders = gc.get_referrers(optimizer)
    # An object may be held by its attributes' dict, which has the object as its only holder.
    holders += gc.get_referrers(*[holder for holder in holders if isinstance(holder, dict)])
    mine = {id(item): item for item in holders if isinstance(item, LRScheduler)}
    return [item for item in mine.values() if getattr(item, "optimizer", None) is optimizer]


def _parts(item: Any) -> list[Any]:
    found: dict[int, Any] = {}
    holders = [item]
    while holders:
        for value in getattr(holders.pop(), "__dict__", {}).values():
            for each in value if isinstance(value, list | tuple) else (value,):
                if isinstance(each, LRScheduler) and id(each) not in found:
                    found[id(each)] = each
                    holders.append(each)
    return [*found.values()]
