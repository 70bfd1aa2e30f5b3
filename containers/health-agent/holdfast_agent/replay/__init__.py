"""Replay: recorded logs in, verdicts out."""

from holdfast_agent.replay.log_replay import Word, replayed

__all__ = ["Word", "replayed"]
