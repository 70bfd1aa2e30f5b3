"""Which file an environment's name stands for. Reading it is left to holdfast.config."""

from holdfast.environments.finding import EXAMPLES, NoSuchEnvironmentError, environment_file, repository_of

__all__ = ["EXAMPLES", "NoSuchEnvironmentError", "environment_file", "repository_of"]
