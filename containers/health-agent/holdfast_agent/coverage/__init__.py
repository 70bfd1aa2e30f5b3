"""Detectors that worked and work no more: when one counts as lost, and when it is back. Pure."""

from holdfast_agent.coverage.losses import Change, Coverage, Report

__all__ = ["Change", "Coverage", "Report"]
