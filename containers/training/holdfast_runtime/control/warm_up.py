"""Messages of a first view, read once in advance: memory that a fork shares is copied at its first use."""

from holdfast_runtime.control.keys import KeyBox
from holdfast_runtime.control.messages import TO_RANK, Keys, Plan, View

VALUE = "A" * 160
"""About what an address of gloo is."""


def warm_up(*, world_size: int) -> None:
    view = View(
        generation=1,
        rank=0,
        local_rank=0,
        world_size=world_size,
        resume_step=0,
        plan=Plan(source="fresh"),
        hosts=("127.0.0.1",) * world_size,
        ports=(1,) * world_size,
    )
    TO_RANK.decode(TO_RANK.encode(view))
    names = [f"rank_{rank}" for rank in range(world_size)]
    received = TO_RANK.decode(TO_RANK.encode(Keys.of(1, dict.fromkeys(names, VALUE))))
    keys = KeyBox(lambda _: None)
    if isinstance(received, Keys):
        keys.take(received)
    for name in names:
        keys.get(name, generation=1, deadline_s=0.0)
