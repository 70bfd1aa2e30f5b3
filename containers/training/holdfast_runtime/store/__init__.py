"""torch.distributed's store, served from the committed view. Needs torch."""

from holdfast_runtime.store.generations import GenerationStore

__all__ = ["GenerationStore"]
