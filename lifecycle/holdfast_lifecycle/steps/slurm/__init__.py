"""Steps that make Slurm run on a node; loaded by name."""

__all__ = ["accounting", "answers", "daemon", "munge", "state"]
