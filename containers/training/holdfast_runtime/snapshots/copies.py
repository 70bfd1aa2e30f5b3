"""
From the tensors of a shard into host memory, beside the training and not in its way.

Between two updates optimizer state does not change, so it is copied during the next forward and backward pass; only an
update has to wait for the end of the copy, which is usually long over. On a GPU the copy is a stream of its own, and it
is the GPU that waits.
"""

import threading
from collections.abc import Mapping

import torch
from torch import Tensor

from holdfast_runtime.snapshots.layout import Block, Layout, SnapshotError


class Copy:
    """
    One copy of a shard into a block. Made in the training thread, which also copies what a forward pass may change.

    Args:
        block: is given room; its label is set by whoever asked for the copy.
        steady: tensors that stay as they are until the next update.
    """

    def __init__(self, block: Block, *, steady: Mapping[str, Tensor], moving: Mapping[str, Tensor]) -> None:
        tensors = {**steady, **moving}
        self.layout = Layout.of(tensors)
        self._steady = steady
        self._started = threading.Event()
        device = next((tensor.device for tensor in tensors.values() if tensor.is_cuda), None)
        self._stream = None if device is None else torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        block.clear(self.layout.size)
        self._views = {entry.name: entry.of(block.data) for entry in self.layout.entries}
        self._move(moving)
        self._ready = self._done = None
        if self._stream is not None:
            self._ready = torch.cuda.current_stream(device).record_event()

    def run(self) -> None:
        """Copy the steady tensors, in another thread. Whoever waits is let go also when it fails."""
        try:
            if self._stream is None:
                self._move(self._steady)
            else:
                with torch.cuda.device(self._stream.device), torch.cuda.stream(self._stream):
                    self._stream.wait_event(self._ready)  # type: ignore[arg-type]
                    self._move(self._steady)
                    self._done = self._stream.record_event()
        finally:
            self._started.set()
        if self._done is not None:
            self._done.synchronize()

    def settle(self, *, deadline_s: float) -> None:
        """Before an update: wait for the end of the copy. Raises SnapshotError at the deadline."""
        if not self._started.wait(deadline_s):
            raise SnapshotError(
                f"the state was not copied within {deadline_s} s, and the next update cannot wait longer"
            )
        if self._stream is not None and self._done is not None:
            torch.cuda.current_stream(self._stream.device).wait_event(self._done)

    @torch.no_grad()
    def _move(self, tensors: Mapping[str, Tensor]) -> None:
        for name, tensor in tensors.items():
            self._views[name].copy_(tensor, non_blocking=True)
