"""Whether the disk takes what a caller wants to have kept."""

from holdfast.localcloud.aws.room._room import READING, Room, is_change

__all__ = ["READING", "Room", "is_change"]
