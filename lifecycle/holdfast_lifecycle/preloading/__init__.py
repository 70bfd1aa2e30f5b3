"""Fetches files of S3 into Lustre in the background, run as `python -m`. Which files is for the step `preload`."""

from holdfast_lifecycle.preloading.fetching import BATCH_WAIT_S, Order, Progress, fetch

__all__ = ["BATCH_WAIT_S", "Order", "Progress", "fetch"]
