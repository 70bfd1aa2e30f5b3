"""torch.distributed's store, served from the committed view. Needs torch."""

from holdfast_runtime.store.epochs import EpochStore

__all__ = ["EpochStore"]
