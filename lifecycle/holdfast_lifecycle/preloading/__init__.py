"""Background fetch of S3 files into Lustre, run as `python -m`. The step `preload` chooses the files."""

from holdfast_lifecycle.preloading.fetching import BATCH_WAIT_S, Order, Progress, fetch

__all__ = ["BATCH_WAIT_S", "Order", "Progress", "fetch"]
