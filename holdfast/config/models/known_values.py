"""Values that an editor completes, in the JSON Schema of a setting."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


@dataclass(frozen=True, kw_only=True)
class KnownValues:
    """
    Mark of a setting of text.

    Args:
        names: Called when the schema is written, so that reading an environment loads no catalogue.
        others: Values of the same form that Holdfast has no record of are allowed, such as a new region.
    """

    names: Callable[[], Iterable[str]]
    others: bool = True

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        known = {"enum": sorted(self.names()), "type": "string"}
        return {"anyOf": [known, handler(core)]} if self.others else known
