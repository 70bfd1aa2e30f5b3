"""Allowed values, and messages of refused ones."""

from holdfast.config.refusals.allowed import Allowed, in_letters_of, number_in_words, refused
from holdfast.config.refusals.problems import EnvironmentFileError, Problem, dotted, plain, shown

__all__ = [
    "Allowed",
    "EnvironmentFileError",
    "Problem",
    "dotted",
    "in_letters_of",
    "number_in_words",
    "plain",
    "refused",
    "shown",
]
