"""The steps that make Slurm run on a node. ``steps`` loads each file by its name, only where it is chosen."""

__all__ = ["accounting", "answers", "daemon", "munge", "state"]
