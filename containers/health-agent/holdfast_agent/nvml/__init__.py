"""NVIDIA's management library, used from a child process that a stuck driver may block."""

from holdfast_agent.nvml.library import (
    GPU_IS_LOST,
    Library,
    NvmlError,
)
from holdfast_agent.nvml.reading import Reader

__all__ = ["GPU_IS_LOST", "Library", "NvmlError", "Reader"]
