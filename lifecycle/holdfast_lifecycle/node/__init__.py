"""
Resources of the node: files, programs, services, accounts, Slurm's settings, and state that outlives a controller.
"""

from holdfast_lifecycle.node.accounts import account, home_of, name_of
from holdfast_lifecycle.node.files import (
    copy_folder,
    fill_folder,
    is_written,
    own_folder,
    point_to,
    with_lines,
    write_whole,
)
from holdfast_lifecycle.node.homes import make_home, missing_home, place_folder
from holdfast_lifecycle.node.impersonation import as_user
from holdfast_lifecycle.node.key_pairs import KEY
from holdfast_lifecycle.node.programs import find_program, has_program, run_program
from holdfast_lifecycle.node.services import (
    add_to_unit,
    answers,
    disable,
    drop_in,
    inactive,
    is_active,
    start,
    stop,
    wait_until,
)
from holdfast_lifecycle.node.shared_state import ACCOUNTING, SERIES, STATE, SharedState, is_open_elsewhere, root_folder
from holdfast_lifecycle.node.slurm import includes, slurm_file, slurm_settings, wait_for_configuration

__all__ = [
    "ACCOUNTING",
    "KEY",
    "SERIES",
    "STATE",
    "SharedState",
    "account",
    "add_to_unit",
    "answers",
    "as_user",
    "copy_folder",
    "disable",
    "drop_in",
    "fill_folder",
    "find_program",
    "has_program",
    "home_of",
    "inactive",
    "includes",
    "is_active",
    "is_open_elsewhere",
    "is_written",
    "make_home",
    "missing_home",
    "name_of",
    "own_folder",
    "place_folder",
    "point_to",
    "root_folder",
    "run_program",
    "slurm_file",
    "slurm_settings",
    "start",
    "stop",
    "wait_for_configuration",
    "wait_until",
    "with_lines",
    "write_whole",
]
