"""Transforms that change nothing, but for a random flip."""

from typing import Any

import torch
from torch import Tensor


class Same:
    def __init__(self, *given: Any, **named: Any) -> None:
        self._given = given

    def __call__(self, image: Any) -> Any:
        return image


class Compose(Same):
    def __call__(self, image: Any) -> Any:
        for each in self._given[0]:
            image = each(image)
        return image


class RandomHorizontalFlip(Same):
    def __call__(self, image: Tensor) -> Tensor:
        return image.flip(-1) if torch.rand(()) < 0.5 else image


ToTensor = Normalize = Resize = CenterCrop = RandomCrop = RandomResizedCrop = Same
