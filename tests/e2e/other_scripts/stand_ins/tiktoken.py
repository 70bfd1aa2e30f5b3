"""Stand-in of tiktoken: a token per byte."""

from collections.abc import Iterable
from typing import Any


class Bytes:
    def encode(self, text: str, **_: Any) -> list[int]:
        return list(text.encode())

    def decode(self, tokens: Iterable[int]) -> str:
        return bytes(token % 256 for token in tokens).decode(errors="replace")


def get_encoding(_: str) -> Bytes:
    return Bytes()
