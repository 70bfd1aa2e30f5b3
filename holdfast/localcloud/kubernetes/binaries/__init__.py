"""Kubernetes binaries: find, build from Debian's packages or take from a folder; check the machine."""

from holdfast.localcloud.kubernetes.binaries.building import MIN_FREE_GIB, build
from holdfast.localcloud.kubernetes.binaries.compiling import described_folders
from holdfast.localcloud.kubernetes.binaries.errors import BinariesError
from holdfast.localcloud.kubernetes.binaries.finding import (
    RECORDS,
    VARIABLE,
    Binaries,
    cache_directory,
    find_binaries,
    missing_programs,
    uses_records,
)
from holdfast.localcloud.kubernetes.binaries.machine import (
    BUILD_TAKES,
    Machine,
    check_machine,
    notes_of_machine,
)
from holdfast.localcloud.kubernetes.binaries.observing import observe_machine, v1_controllers
from holdfast.localcloud.kubernetes.binaries.packages import mirrors_among
from holdfast.localcloud.kubernetes.binaries.recipe import PROGRAMS, compiled, recipe_key
from holdfast.localcloud.kubernetes.binaries.running import run
from holdfast.localcloud.kubernetes.binaries.stepping import Report, Step, go_through, only_one
from holdfast.localcloud.kubernetes.binaries.versions import COMPONENTS, knowledge, version_flags

__all__ = [
    "BUILD_TAKES",
    "COMPONENTS",
    "MIN_FREE_GIB",
    "PROGRAMS",
    "RECORDS",
    "VARIABLE",
    "Binaries",
    "BinariesError",
    "Machine",
    "Report",
    "Step",
    "build",
    "cache_directory",
    "check_machine",
    "compiled",
    "described_folders",
    "find_binaries",
    "go_through",
    "knowledge",
    "mirrors_among",
    "missing_programs",
    "notes_of_machine",
    "observe_machine",
    "only_one",
    "recipe_key",
    "run",
    "uses_records",
    "v1_controllers",
    "version_flags",
]
