"""The command line of the agent: one thin file per command, none of which imports another."""

from holdfast_agent.commands.command_line import main

__all__ = ["main"]
