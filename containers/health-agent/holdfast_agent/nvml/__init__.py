"""NVIDIA's management library, read from a child process that may never come back from it."""

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
