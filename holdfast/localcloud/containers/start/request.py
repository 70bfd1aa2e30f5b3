from collections.abc import Mapping
from dataclasses import dataclass

from .errors import RefusedError

MAX_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class StepUser:
    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str = ""
    home: str = "/"


@dataclass(frozen=True, kw_only=True)
class StepRequest:
    """Options of one step. ``images`` is the folder of the store."""

    user: StepUser
    image: str
    images: str
    mounts: str = ""
    workdir: str = ""
    read_only: bool = False
    mount_home: bool = False
    folder: str = "/"
    """The step's working directory on the node."""
    script: str = ""
    """The batch script that is to run in the container."""


def parse(body: bytes) -> StepRequest:
    """Parse pairs, each ended by a zero byte. Raise RefusedError for too many, else ValueError."""
    if len(body) > MAX_BYTES:
        raise RefusedError(f"the container options have {len(body)} bytes; at most {MAX_BYTES} are allowed")
    words = body.decode(errors="surrogateescape").split("\0")
    given: Mapping[str, str] = dict(word.split("=", 1) for word in words[:-1])
    user = StepUser(
        uid=int(given["uid"]),
        gid=int(given["gid"]),
        groups=tuple(int(number) for number in given["groups"].split(",") if number),
        name=given.get("user", ""),
        home=given.get("home") or "/",
    )
    return StepRequest(
        user=user,
        image=given["image"],
        images=given["images"],
        mounts=given.get("mounts", ""),
        workdir=given.get("workdir", ""),
        read_only=given.get("read_only") == "1",
        mount_home=given.get("mount_home") == "1",
        folder=given.get("folder") or "/",
        script=given.get("script", ""),
    )
