"""Data sets of small random images whose class is in them."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

TRAIN, TEST, CLASSES = 192, 64, 10


class Images(Dataset[tuple[Any, int]]):
    """Images of noise with a bright row that is the number of the class."""

    def __init__(self, count: int, shape: tuple[int, int, int], *, first: int = 0, transform: Any = None) -> None:
        own = torch.Generator().manual_seed(first)
        self.targets = torch.arange(count) % CLASSES
        images = torch.rand((count, *shape), generator=own)
        images[torch.arange(count), :, self.targets] = 1.0
        self.images, self.transform = images, transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.images[index]
        return self.transform(image) if self.transform else image, int(self.targets[index])


class MNIST(Images):
    def __init__(self, root: str, train: bool = True, download: bool = False, transform: Any = None) -> None:
        super().__init__(TRAIN if train else TEST, (1, 28, 28), first=0 if train else 1, transform=transform)

    @property
    def data(self) -> Tensor:
        return self.images[:, 0]


class CIFAR10(Images):
    def __init__(self, root: str, train: bool = True, download: bool = False, transform: Any = None) -> None:
        super().__init__(TRAIN if train else TEST, (3, 32, 32), first=2 if train else 3, transform=transform)


class FakeData(Images):
    def __init__(
        self, size: int = 64, image_size: tuple[int, int, int] = (3, 64, 64), _: int = 10, transform: Any = None
    ) -> None:
        super().__init__(min(size, TRAIN), image_size, first=4 + size % 2, transform=transform)


class ImageFolder(Images):
    def __init__(self, root: str, transform: Any = None) -> None:
        train = root.endswith("train")
        super().__init__(TRAIN if train else TEST, (3, 32, 32), first=6 if train else 7, transform=transform)
