"""Which file an environment's name stands for. Reading it is left to holdfast.config."""

from holdfast.environments.finding import FOLDER, NoSuchEnvironmentError, environment_file

__all__ = ["FOLDER", "NoSuchEnvironmentError", "environment_file"]
