"""Replay: recorded logs in, verdicts out."""

from holdfast_agent.replay.replaying import Word, replayed

__all__ = ["Word", "replayed"]
