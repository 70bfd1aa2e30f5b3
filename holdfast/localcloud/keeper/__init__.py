"""Restarts of the local cloud's processes."""

from holdfast.localcloud.keeper.restarts import ProcessKeeper

__all__ = ["ProcessKeeper"]
