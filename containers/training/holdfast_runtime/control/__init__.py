"""What a rank and its launcher say to each other, how long they wait, and the rank's end of the line."""

from holdfast_runtime.control.cache import ROOT as CACHE_ROOT
from holdfast_runtime.control.cache import VARIABLE as CACHE_VARIABLE
from holdfast_runtime.control.cache import cache_folder, open_unbuffered, own_cache, remove_abandoned, use_folder
from holdfast_runtime.control.client import ControlClient, LauncherLostError
from holdfast_runtime.control.codec import LONGEST_TEXT_BYTES, Codec, MessageError
from holdfast_runtime.control.deadlines import Deadlines
from holdfast_runtime.control.ending import end_tasks
from holdfast_runtime.control.keys import KeyBox
from holdfast_runtime.control.listening import listen
from holdfast_runtime.control.messages import (
    FROM_RANK,
    TO_RANK,
    Build,
    Buildable,
    Change,
    Changed,
    Cold,
    Dump,
    Fault,
    Finished,
    FromRank,
    HandOver,
    Hello,
    Keys,
    Leave,
    Phase,
    Plan,
    Progress,
    Put,
    Raised,
    Ready,
    Stop,
    Survives,
    ToRank,
    View,
)
from holdfast_runtime.control.stopped import Stopped, WatchedLauncher, is_stopped, timeval

__all__ = [
    "CACHE_ROOT",
    "CACHE_VARIABLE",
    "FROM_RANK",
    "LONGEST_TEXT_BYTES",
    "TO_RANK",
    "Build",
    "Buildable",
    "Change",
    "Changed",
    "Codec",
    "Cold",
    "ControlClient",
    "Deadlines",
    "Dump",
    "Fault",
    "Finished",
    "FromRank",
    "HandOver",
    "Hello",
    "KeyBox",
    "Keys",
    "LauncherLostError",
    "Leave",
    "MessageError",
    "Phase",
    "Plan",
    "Progress",
    "Put",
    "Raised",
    "Ready",
    "Stop",
    "Stopped",
    "Survives",
    "ToRank",
    "View",
    "WatchedLauncher",
    "cache_folder",
    "end_tasks",
    "is_stopped",
    "listen",
    "open_unbuffered",
    "own_cache",
    "remove_abandoned",
    "timeval",
    "use_folder",
]
