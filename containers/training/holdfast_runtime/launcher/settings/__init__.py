"""
The flags of `holdfast-run` and the environment that a process gets from them. Where peers are found is for `links`.
"""

from holdfast_runtime.launcher.settings.environment import cache_job, find_rack, master_port, variables
from holdfast_runtime.launcher.settings.options import Options, default_socket, log_file, parse_options

__all__ = [
    "Options",
    "cache_job",
    "default_socket",
    "find_rack",
    "log_file",
    "master_port",
    "parse_options",
    "variables",
]
