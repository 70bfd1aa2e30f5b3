"""Plugins for Slurm, compiled for the Slurm of this machine."""

from .compiling import SYSTEM_PATH, cannot_compile, compile_plugin, header_version, slurm_version

__all__ = ["SYSTEM_PATH", "cannot_compile", "compile_plugin", "header_version", "slurm_version"]
