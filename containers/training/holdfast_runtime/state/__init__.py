"""
State of a training besides the values of parameters and the optimizer's tensors: read, put back, sent, compared.

``modules`` has attributes, modes, buffers, hooks and frozen parameters of a model; ``groups`` an optimizer's settings;
``schedulers`` those that a program did not give to ``Run``; ``switches`` torch's own settings; ``generators`` random
states; ``values`` copies.
"""

from holdfast_runtime.state.generators import random_states, set_random_states
from holdfast_runtime.state.groups import Noted, groups_of, note_groups, put_groups, restore_groups
from holdfast_runtime.state.hooks import before_forward
from holdfast_runtime.state.modules import ModelNotes, ModelReader, StructureError, put_buffers
from holdfast_runtime.state.schedulers import Schedulers
from holdfast_runtime.state.switches import SWITCHES, switch_back, switched
from holdfast_runtime.state.values import (
    NotKeptError,
    Path,
    copied,
    copy_into,
    leaves,
    named,
    put_back,
    replaced,
    shown,
)

__all__ = [
    "SWITCHES",
    "ModelNotes",
    "ModelReader",
    "NotKeptError",
    "Noted",
    "Path",
    "Schedulers",
    "StructureError",
    "before_forward",
    "copied",
    "copy_into",
    "groups_of",
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
