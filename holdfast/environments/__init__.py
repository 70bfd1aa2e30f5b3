"""File of an environment name. holdfast.config reads it."""

from holdfast.environments.files import FOLDER, NoSuchEnvironmentError, environment_file

__all__ = ["FOLDER", "NoSuchEnvironmentError", "environment_file"]
