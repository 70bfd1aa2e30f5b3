"""Rules about lifecycle scripts and their configuration (5xx). Roles that fetch them are in rules.iam."""

from holdfast.validation.rules.lifecycle import (  # noqa: F401 - each registers its rules
    configuration,
    languages,
    loops,
    scripts,
)
from holdfast.validation.rules.lifecycle.configuration import ERRORS
from holdfast.validation.rules.lifecycle.scripts import ROLE

__all__ = ["ERRORS", "ROLE"]
