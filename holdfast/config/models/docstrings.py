"""Descriptions of settings, read from the docstrings in the source on demand."""

import ast
import inspect
import re
from functools import cache
from itertools import pairwise
from textwrap import dedent

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from holdfast.catalog import Property


@cache
def meanings(model: type[BaseModel]) -> dict[str, str]:
    """Description of each setting of a section, by name."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if issubclass(kind, BaseModel) and kind is not BaseModel:
            found |= _docstrings(kind)
    return {name: _with_api_name(text, property_of(model.model_fields[name])) for name, text in found.items()}


def property_of(field: FieldInfo) -> Property | None:
    """CloudFormation property of a setting, if it is one."""
    return next((mark for mark in field.metadata if isinstance(mark, Property)), None)


def _with_api_name(text: str, becomes: Property | None) -> str:
    return text if becomes is None else re.sub(r"(?=[.;](\s|$))|$", f" (API: {becomes.name})", text, count=1)


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    found: dict[str, str] = {}
    (definition,) = ast.parse(dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)
    for pair in pairwise(definition.body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
    return found
