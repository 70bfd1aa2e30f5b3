"""
Reads the environment file that a command speaks of, once, with its problems as the command's last word. Which file
that is, is left to holdfast.environments.
"""

from holdfast.cli.definitions.reading import judged_definition, read_definition

__all__ = ["judged_definition", "read_definition"]
