"""How many GPUs this machine has, without asking torch, and a mark for tests that need some."""

from pathlib import Path

import pytest


def count() -> int:
    """NVIDIA's driver lists them here."""
    return len([*Path("/proc/driver/nvidia/gpus").glob("*")])


def needs(gpus: int) -> pytest.MarkDecorator:
    """Skips a test visibly where there are fewer."""
    return pytest.mark.skipif(count() < gpus, reason=f"needs {gpus} NVIDIA GPU{'s' if gpus > 1 else ''}")
