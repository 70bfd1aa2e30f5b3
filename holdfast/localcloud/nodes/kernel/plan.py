"""Boot plan: written by ``booting``, read by ``boot``."""

from typing import TypedDict


class Layer(TypedDict):
    at: str
    lowers: list[str]  # what the node reads through, topmost first
    upper: str
    work: str


class PlannedFile(TypedDict):
    path: str
    content: bytes
    mode: int
    uid: int
    gid: int


class Directory(TypedDict):
    path: str
    mode: int
    uid: int
    gid: int


class Bind(TypedDict):
    source: str
    target: str
    read_only: bool


class Cgroup(TypedDict):
    controllers: str  # as /proc/self/cgroup names the hierarchy; empty for version 2
    name: str  # of the hierarchy's folder below /sys/fs/cgroup; empty: it is that folder, version 2 alone
    at: str  # the node's own cgroup, as the machine sees it


class BootPlan(TypedDict):
    caller: int
    inherited: list[int]
    hostname: str
    link: str
    address: str
    prefix: int
    subnet: str
    gateway: str
    mac: str
    fabric: str
    root: str
    console: str
    layers: list[Layer]
    image: str  # of the upper layers' lowers; empty: none
    hide: list[str]
    empty: list[str]
    directories: list[Directory]
    files: list[PlannedFile]
    binds: list[Bind]
    capabilities: list[int]  # all that any process of the node can ever have
    read_only: list[str]
    masked: list[str]
    cgroups: list[Cgroup]  # empty: no cgroups of its own
    kernel_files: list[PlannedFile]
    kernel_log: int  # descriptor of /dev/fuse, to be mounted as /dev/kmsg; -1: none
