"""A small model of our own in place of a ResNet."""

from typing import Any

from torch import Tensor, nn


class Small(nn.Module):
    """Convolution, BatchNorm and a linear layer, with the names of torchvision's ResNet."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(64, width, 3, stride=2, padding=1)
        self.avgpool = nn.AdaptiveAvgPool2d(2)
        self.flat = nn.Flatten()
        self.fc = nn.Linear(4 * width, 10)

    def forward(self, images: Tensor) -> Tensor:
        for child in self.children():
            images = child(images)
        return images


def resnet18(**_: Any) -> nn.Module:
    return Small()
