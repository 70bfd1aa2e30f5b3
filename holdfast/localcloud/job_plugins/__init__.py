"""
What Slurm on the nodes of the local HyperPod does for jobs beyond stock Slurm.

``srun --auto-resume=1``: HyperPod's plugin and its agent are closed. What is here does what their guide says of nodes
with GRES, which all nodes with GPUs are: the job is put back into the queue, unless it forbids that, and starts from
its beginning. Beside it the variables that each task finds, and folders for the output of jobs where Slurm is too old
to make them.
"""

from .plugin import AT, Plugin, compile_into, plugstack_lines, prepare

__all__ = ["AT", "Plugin", "compile_into", "plugstack_lines", "prepare"]
