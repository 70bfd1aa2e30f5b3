"""File of an environment name. holdfast.config reads it."""

from holdfast.environments.files import (
    EXAMPLES,
    NoSuchEnvironmentError,
    environment_file,
    environment_names,
    repository_of,
)

__all__ = ["EXAMPLES", "NoSuchEnvironmentError", "environment_file", "environment_names", "repository_of"]
