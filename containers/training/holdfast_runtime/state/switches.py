"""Settings of torch that a loop may switch: grad mode, autocast, default type, precision."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Switch:
    """One setting of a process, as torch has it."""

    read: Callable[[], Any]
    write: Callable[[Any], object]


def _autocast(device: str) -> Switch:
    def write(value: Any) -> None:
        torch.set_autocast_enabled(device, value)

    return Switch(lambda: torch.is_autocast_enabled(device), write)


SWITCHES: dict[str, Switch] = {
    "grad mode": Switch(torch.is_grad_enabled, torch._C._set_grad_enabled),
    "autocast of the CPU": _autocast("cpu"),
    "autocast of CUDA": _autocast("cuda"),
    "autocast type of the CPU": Switch(
        lambda: torch.get_autocast_dtype("cpu"), lambda value: torch.set_autocast_dtype("cpu", value)
    ),
    "autocast type of CUDA": Switch(
        lambda: torch.get_autocast_dtype("cuda"), lambda value: torch.set_autocast_dtype("cuda", value)
    ),
    "default type": Switch(torch.get_default_dtype, torch.set_default_dtype),
    "precision of float32": Switch(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "deterministic algorithms": Switch(torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    "anomaly detection": Switch(torch.is_anomaly_enabled, torch.set_anomaly_enabled),
}


def switched() -> dict[str, Any]:
    return {name: switch.read() for name, switch in SWITCHES.items()}


def switch_back(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        if SWITCHES[name].read() != value:
            SWITCHES[name].write(value)
