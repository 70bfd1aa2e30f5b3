"""
The flags of `holdfast-run` and the environment that a process gets from them. Where peers are found is for `links`.
"""

from holdfast_runtime.launcher.settings.environment import find_rack, master_port, variables
from holdfast_runtime.launcher.settings.folders import check_folder, make_folder, socket_folders
from holdfast_runtime.launcher.settings.options import Options, default_socket, log_file, parse_options

__all__ = [
    "Options",
    "check_folder",
    "default_socket",
    "find_rack",
    "log_file",
    "make_folder",
    "master_port",
    "parse_options",
    "socket_folders",
    "variables",
]
