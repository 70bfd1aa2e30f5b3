from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from holdfast.config.models.docstrings import meanings


def _describe(schema: dict[str, Any], model: type[BaseModel]) -> None:
    for name, meaning in meanings(model).items():
        schema["properties"][name]["description"] = meaning


class Model(BaseModel):
    """Base of every section: unknown settings and values of the wrong type are refused, nothing can be changed."""

    # Not use_attribute_docstrings, which reads all sources at import: half the time of reading an environment.
    # Deferred, because the environment's validator contains those of its sections, which nothing validates alone.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, json_schema_extra=_describe, defer_build=True)


@dataclass(frozen=True, kw_only=True)
class KnownValues:
    """
    Mark of a setting of text: values that an editor completes.

    Args:
        names: Called when the schema is written, so that reading an environment loads no catalogue.
        others: Values of the same form that Holdfast has no record of are allowed, such as a new region.
    """

    names: Callable[[], Iterable[str]]
    others: bool = True

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        known = {"enum": sorted(self.names()), "type": "string"}
        return {"anyOf": [known, handler(core)]} if self.others else known
