"""Environment files of commands, with their problems as errors of the command."""

from holdfast.cli.definitions.completion import complete_environment, complete_instance_type
from holdfast.cli.definitions.reading import judged_definition, read_definition

__all__ = ["complete_environment", "complete_instance_type", "judged_definition", "read_definition"]
