"""Starts the processes of a local cloud again when they die. What they are is for ``processes``."""

from holdfast.localcloud.keeper.restarts import Keeper

__all__ = ["Keeper"]
