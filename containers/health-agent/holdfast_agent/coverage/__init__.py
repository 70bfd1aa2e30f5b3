"""Lost detectors: those that worked and no longer do. Pure."""

from holdfast_agent.coverage.losses import Change, Coverage, Report

__all__ = ["Change", "Coverage", "Report"]
