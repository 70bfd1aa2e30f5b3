"""A repository of the user: environments, app, job, tests and CI workflows, written once and theirs from then on."""

from holdfast.cli.repository.answers import Answers, refusal
from holdfast.cli.repository.rendering import repository_files
from holdfast.cli.repository.writing import write_repository

__all__ = ["Answers", "refusal", "repository_files", "write_repository"]
