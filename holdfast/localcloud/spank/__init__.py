"""Slurm plugins, compiled for this machine's Slurm."""

from .compiling import SYSTEM_PATH, cannot_compile, compile_plugin, header_version, slurm_version

__all__ = ["SYSTEM_PATH", "cannot_compile", "compile_plugin", "header_version", "slurm_version"]
