"""Pictures are not written."""

from typing import Any

from torch import Tensor


def save_image(image: Tensor, path: str, **_: Any) -> None:
    pass


def make_grid(tensor: Tensor, **_: Any) -> Tensor:
    return tensor
