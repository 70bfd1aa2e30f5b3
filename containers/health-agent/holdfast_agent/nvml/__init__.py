"""NVIDIA's management library, used from a child process that a stuck driver may block."""

from holdfast_agent.nvml.library import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    NOT_SUPPORTED,
    RESET_REQUIRED,
    Library,
    NvmlError,
)
from holdfast_agent.nvml.reading import Reader

__all__ = ["FUNCTION_NOT_FOUND", "GPU_IS_LOST", "NOT_SUPPORTED", "RESET_REQUIRED", "Library", "NvmlError", "Reader"]
