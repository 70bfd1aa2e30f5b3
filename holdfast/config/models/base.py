from typing import Any

from pydantic import BaseModel, ConfigDict

from holdfast.config.models.docstrings import meanings


def _describe(schema: dict[str, Any], model: type[BaseModel]) -> None:
    for name, meaning in meanings(model).items():
        schema["properties"][name]["description"] = meaning


class Model(BaseModel):
    """Base of every section: unknown settings and values of the wrong type are refused, nothing can be changed."""

    # Not use_attribute_docstrings, which reads all sources at import: half the time of reading an environment.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, json_schema_extra=_describe)
