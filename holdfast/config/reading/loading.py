"""Reads an environment file: parse, explain, and either give a model or say everything that is wrong with its shape."""

from pathlib import Path

from pydantic import ValidationError

from holdfast.config.models import Environment
from holdfast.config.reading.document import Document, read
from holdfast.config.reading.explanations import explain
from holdfast.config.refusals import EnvironmentFileError, Problem


def load(path: Path) -> Environment:
    """
    The environment that a file describes. Whether its settings are possible together is left to the rules.

    Raises:
        EnvironmentFileError: it describes none; all problems at once.
    """
    environment, problems = parse(read(path))
    if problems or environment is None:
        raise EnvironmentFileError(problems)
    return environment


def parse(document: Document) -> tuple[Environment | None, list[Problem]]:
    """The environment of a document, if it is one, and every problem of its shape."""
    problems, environment = list(document.problems), None
    try:
        environment = Environment.model_validate(document.data)
    except ValidationError as error:
        problems += explain(error, document)
    reported = {problem.path for problem in problems}
    return environment, problems + [problem for problem in document.odd_numbers if problem.path not in reported]
