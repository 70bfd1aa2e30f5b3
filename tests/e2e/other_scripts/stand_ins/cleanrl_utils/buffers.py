"""A replay buffer of NumPy arrays."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch


class ReplayBuffer:
    def __init__(self, size: int, observations: Any, actions: Any, device: Any, **_: Any) -> None:
        shape = observations.shape
        self.before, self.after = (np.zeros((size, *shape), np.float32) for _ in range(2))
        self.actions, self.rewards, self.dones = (np.zeros((size, 1), np.float32) for _ in range(3))
        self.count = 0

    def add(self, before: Any, after: Any, actions: Any, rewards: Any, dones: Any, _: Any) -> None:
        at = self.count % len(self.before)
        self.before[at], self.after[at] = before[0], after[0]
        self.actions[at], self.rewards[at], self.dones[at] = actions, rewards, dones
        self.count += 1

    def sample(self, size: int) -> Any:
        rows = np.random.randint(min(self.count, len(self.before)), size=size)
        return SimpleNamespace(
            observations=torch.from_numpy(self.before[rows]),
            next_observations=torch.from_numpy(self.after[rows]),
            actions=torch.from_numpy(self.actions[rows]).long(),
            rewards=torch.from_numpy(self.rewards[rows]),
            dones=torch.from_numpy(self.dones[rows]),
        )
