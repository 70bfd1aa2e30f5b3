"""Environment files of commands, with their problems as errors of the command."""

from holdfast.cli.definitions.reading import judged_definition, read_definition

__all__ = ["judged_definition", "read_definition"]
