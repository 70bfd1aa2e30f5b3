"""Kubernetes binaries: find, build from Debian's packages or take from a folder; check the machine."""

from holdfast.localcloud.kubernetes.binaries.building import build
from holdfast.localcloud.kubernetes.binaries.compiling import described_folders
from holdfast.localcloud.kubernetes.binaries.errors import BinariesError
from holdfast.localcloud.kubernetes.binaries.finding import (
    RECORDS,
    VARIABLE,
    Binaries,
    cache_directory,
    find_binaries,
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
from holdfast.localcloud.kubernetes.binaries.stepping import only_one
from holdfast.localcloud.kubernetes.binaries.versions import COMPONENTS, knowledge, version_flags

__all__ = [
    "BUILD_TAKES",
    "COMPONENTS",
    "PROGRAMS",
    "RECORDS",
    "VARIABLE",
    "Binaries",
    "BinariesError",
    "Machine",
    "build",
    "cache_directory",
    "check_machine",
    "compiled",
    "described_folders",
    "find_binaries",
    "knowledge",
    "mirrors_among",
    "notes_of_machine",
    "observe_machine",
    "only_one",
    "recipe_key",
    "uses_records",
    "v1_controllers",
    "version_flags",
]
