"""Restarts of the local cloud's processes."""

from holdfast.localcloud.keeper.restarts import Keeper

__all__ = ["Keeper"]
