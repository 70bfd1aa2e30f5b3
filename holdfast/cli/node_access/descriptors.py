"""Descriptors that a relay reads and writes."""

import os
from typing import BinaryIO


def own_reader(source: int) -> BinaryIO:
    """Return a reader of a duplicate: the caller may close its own, whose number would be another file's then."""
    return os.fdopen(os.dup(source), "rb", buffering=0)


def write_all(sink: int, data: bytes) -> None:
    while data:
        data = data[os.write(sink, data) :]
