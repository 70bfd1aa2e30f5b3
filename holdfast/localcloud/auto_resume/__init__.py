"""
``srun --auto-resume=1`` on the nodes of the local HyperPod.

HyperPod's plugin and its agent are closed. What is here does what their guide says of nodes with GRES, which all nodes
with GPUs are: the job is put back into the queue, unless it forbids that, and starts from its beginning.
"""

from .plugin import AT, Plugin, prepare

__all__ = ["AT", "Plugin", "prepare"]
