"""Copies of the state of a sharded job: where they are, and what may be lost. For ranks, launchers and the planner."""

from holdfast_common.placement.keepers import (
    BLOCKS,
    REACHES,
    Keepers,
    Reach,
    Spot,
    Survival,
    keepers,
    needs_snapshots,
    survival,
)

__all__ = ["BLOCKS", "REACHES", "Keepers", "Reach", "Spot", "Survival", "keepers", "needs_snapshots", "survival"]
