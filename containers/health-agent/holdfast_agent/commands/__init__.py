"""Command line of the agent: one file per command, independent of each other."""

from holdfast_agent.commands.command_line import main

__all__ = ["main"]
