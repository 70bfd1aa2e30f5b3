"""
The process that has imported torch and forks ranks on request, run as ``python -m``. Who asks it is for ``ranks``.
"""

from holdfast_runtime.launcher.zygote.request import BEGIN, Request, die_with_parent

__all__ = ["BEGIN", "Request", "die_with_parent"]
