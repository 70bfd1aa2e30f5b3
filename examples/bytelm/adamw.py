"""AdamW over one flat vector of all parameters.

torch.optim would do, but constructing one of its optimizers imports torch._dynamo and sympy: two seconds of every
restart. The flat vectors also make the gradient exchange one collective and the checkpoint three tensors.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class FlatAdamW:
    """Owns the storage of the parameters and gradients; both stay visible through the module."""

    def __init__(self, parameters: Iterable[nn.Parameter], *, weight_decay: float = 0.01) -> None:
        owned = list(parameters)
        self.values = torch.cat([parameter.detach().reshape(-1) for parameter in owned])
        self.gradient = torch.zeros_like(self.values)
        self.first_moment = torch.zeros_like(self.values)
        self.second_moment = torch.zeros_like(self.values)
        self.weight_decay = weight_decay
        start = 0
        for parameter in owned:
            end = start + parameter.numel()
            parameter.data = self.values[start:end].view_as(parameter)
            parameter.grad = self.gradient[start:end].view_as(parameter)
            start = end

    @property
    def state(self) -> dict[str, Tensor]:
        """State to save; load by copying into it."""
        return {"values": self.values, "first_moment": self.first_moment, "second_moment": self.second_moment}

    @torch.no_grad()
    def step(self, number: int, *, learning_rate: float, betas: tuple[float, float] = (0.9, 0.95)) -> None:
        """Apply the gradient of step ``number`` (the first is 1) and clear it."""
        self.first_moment.lerp_(self.gradient, 1 - betas[0])
        self.second_moment.mul_(betas[1]).addcmul_(self.gradient, self.gradient, value=1 - betas[1])
        scale = (self.second_moment / (1 - betas[1] ** number)).sqrt_().add_(1e-8)
        self.values.mul_(1 - learning_rate * self.weight_decay)
        self.values.addcdiv_(self.first_moment, scale, value=-learning_rate / (1 - betas[0] ** number))
        self.gradient.zero_()
