"""
Slurm plugins for jobs on the local HyperPod.

``srun --auto-resume=1``: HyperPod's plugin and agent are closed. Here a job is requeued, unless it forbids that, as the
guide documents for nodes with GRES. Also job variables, and output folders for older versions of Slurm.
"""

from .plugin import compile_into, plugstack_lines, prepare

__all__ = ["compile_into", "plugstack_lines", "prepare"]
