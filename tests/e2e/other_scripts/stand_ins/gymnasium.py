"""Stand-in of gymnasium: one environment, a point that is pushed to the left or right."""

from types import SimpleNamespace
from typing import Any

import numpy as np


class Discrete:
    def __init__(self, n: int) -> None:
        self.n = n

    def sample(self) -> int:
        return int(np.random.randint(self.n))

    def seed(self, seed: int) -> None:
        pass


class Point:
    """A point with a speed; it is lost at a distance of 1."""

    def __init__(self) -> None:
        self.action_space = Discrete(2)
        self.state, self.age = np.zeros(4, np.float32), 0

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        self.state = np.random.uniform(-0.05, 0.05, 4).astype(np.float32)
        self.age = 0
        return self.state.copy(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        place, speed, *_ = self.state
        speed += (0.1 if action else -0.1) + 0.05 * place
        self.age += 1
        self.state = np.array([place + 0.1 * speed, speed, abs(place), self.age / 100], np.float32)
        return self.state.copy(), 1.0, bool(abs(place) > 1), self.age >= 100, {}


class SyncVectorEnv:
    def __init__(self, makers: Any) -> None:
        self.envs, self.num_envs = [make() for make in makers], len(makers)
        self.single_action_space = self.envs[0].action_space
        self.single_observation_space = SimpleNamespace(shape=(4,))

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        return np.stack([env.reset(seed)[0] for env in self.envs]), {}

    def step(self, actions: Any) -> tuple[Any, ...]:
        rows = [env.step(action) for env, action in zip(self.envs, actions, strict=True)]
        states, rewards, terminated, truncated = (np.array([row[part] for row in rows]) for part in range(4))
        infos = {"final_observation": states.copy()}
        for place, env in enumerate(self.envs):
            if terminated[place] or truncated[place]:
                states[place] = env.reset()[0]
        return states, rewards, terminated, truncated, infos

    def close(self) -> None:
        pass


def make(_: str, **__: Any) -> Point:
    return Point()


spaces = SimpleNamespace(Discrete=Discrete)
vector = SimpleNamespace(SyncVectorEnv=SyncVectorEnv)
wrappers = SimpleNamespace(RecordEpisodeStatistics=lambda env: env)
