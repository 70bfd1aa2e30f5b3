"""
State of a training besides the values of parameters and the optimizer's tensors: read, put back, sent, compared.

``modules`` has attributes, modes, buffers, hooks and frozen parameters of a model; ``groups`` an optimizer's settings,
and ``optimizers`` its attributes; ``schedulers`` those that a program did not give to ``Run``; ``switches`` torch's own
settings; ``generators`` random states; ``values`` copies.
"""

from holdfast_runtime.state.generators import AnyGenerator, GeneratorState, random_states, set_random_states
from holdfast_runtime.state.groups import Noted, groups_of, note_groups, put_groups, restore_groups
from holdfast_runtime.state.hooks import before_forward, before_step
from holdfast_runtime.state.modules import ModelNotes, ModelReader, ModuleState, StructureError, put_buffers
from holdfast_runtime.state.optimizers import OptimizerAttributes, inner_optimizers
from holdfast_runtime.state.schedulers import Schedulers
from holdfast_runtime.state.switches import switch_back, switched
from holdfast_runtime.state.values import (
    NotKeptError,
    Path,
    copied,
    copy_into,
    generator_state,
    leaves,
    named,
    put_back,
    replaced,
    shown,
)

__all__ = [
    "AnyGenerator",
    "GeneratorState",
    "ModelNotes",
    "ModelReader",
    "ModuleState",
    "NotKeptError",
    "Noted",
    "OptimizerAttributes",
    "Path",
    "Schedulers",
    "StructureError",
    "before_forward",
    "before_step",
    "copied",
    "copy_into",
    "generator_state",
    "groups_of",
    "inner_optimizers",
    "leaves",
    "named",
    "note_groups",
    "put_back",
    "put_buffers",
    "put_groups",
    "random_states",
    "replaced",
    "restore_groups",
    "set_random_states",
    "shown",
    "switch_back",
    "switched",
]
