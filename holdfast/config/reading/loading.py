"""Environment file: parse, explain, model."""

from pathlib import Path

from pydantic import ValidationError

from holdfast.config.models import Environment
from holdfast.config.reading.document import Document, read
from holdfast.config.reading.explanations import explain
from holdfast.config.refusals import EnvironmentFileError, Problem


def load(path: Path) -> Environment:
    """Load a file. Raises: EnvironmentFileError: all problems at once."""
    environment, problems = parse(read(path))
    if problems or environment is None:
        raise EnvironmentFileError(problems)
    return environment


def parse(document: Document) -> tuple[Environment | None, list[Problem]]:
    """Model of a document, if valid, and all problems of its shape."""
    problems, environment = list(document.problems), None
    try:
        environment = Environment.model_validate(document.data)
    except ValidationError as error:
        problems += explain(error, document)
    reported = {problem.path for problem in problems}
    return environment, problems + [problem for problem in document.odd_numbers if problem.path not in reported]
