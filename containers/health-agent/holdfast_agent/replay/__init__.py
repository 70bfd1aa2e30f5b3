"""Recorded logs in, decisions out: what the agent would have said to each line, without a node."""

from holdfast_agent.replay.replaying import Word, replayed

__all__ = ["Word", "replayed"]
