"""Messages to local ranks about a committed view: own place, and addresses of all others. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from holdfast_runtime import control
from holdfast_runtime.membership import Slot, View


def rank_views(view: View, *, node: int) -> Iterator[tuple[Slot, control.View]]:
    receivers: dict[int, list[int]] = {}
    for receiver, donors in enumerate(view.donors):
        if donors:
            receivers.setdefault(donors[0], []).append(receiver)
    common = control.View(
        generation=view.generation,
        rank=-1,
        world_size=len(view.ranks),
        resume_step=view.resume_step,
        plan=control.Plan(source="fresh", lost_steps=view.lost_steps, cut=view.cut, parts=view.parts),
        hosts=tuple(item.host for item in (*view.ranks, *view.leavers)),
        ports=tuple(item.port for item in (*view.ranks, *view.leavers)),
    )
    for rank, item in enumerate(view.ranks):
        if item.slot.node == node:
            plan = replace(
                common.plan,
                source=view.sources[rank],
                donors=view.donors[rank],
                receivers=tuple(receivers.get(rank, ())),
            )
            yield item.slot, replace(common, rank=rank, plan=plan)
    for number, item in enumerate(view.leavers, start=len(view.ranks)):
        if item.slot.node == node:
            plan = replace(common.plan, source="memory", receivers=tuple(receivers.get(number, ())))
            yield item.slot, replace(common, plan=plan)
