"""Reads an environment file: parse, explain, judge, and either give a model or say everything that is wrong."""

from pathlib import Path

from pydantic import ValidationError

from holdfast.config._document import read
from holdfast.config._explain import explain
from holdfast.config._models import Environment
from holdfast.config._problems import EnvironmentFileError
from holdfast.config._rules import broken_rules


def load(path: Path) -> Environment:
    """
    The environment that a file describes.

    Raises:
        EnvironmentFileError: it describes none; all problems at once.
    """
    document = read(path)
    problems = list(document.problems)
    environment = None
    try:
        environment = Environment.model_validate(document.data)
    except ValidationError as error:
        problems += explain(error, document)
    told = {problem.path for problem in problems}
    problems += [problem for problem in broken_rules(document) if problem.path not in told]
    if problems or environment is None:
        raise EnvironmentFileError(problems)
    return environment
