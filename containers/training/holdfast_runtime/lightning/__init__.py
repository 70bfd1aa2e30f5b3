"""
PyTorch Lightning on top of ``Run``: ``Trainer(strategy=HoldfastStrategy())`` under ``holdfast-run``, and nothing else.

``strategy`` makes each optimizer step one of ``Run``, ``accumulation`` one of several batches; ``data`` gives each rank
its part of the data, from any batch.
"""

from holdfast_runtime.lightning.strategy import HoldfastStrategy

__all__ = ["HoldfastStrategy"]
