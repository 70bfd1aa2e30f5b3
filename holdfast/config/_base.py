"""What every section of the environment file has in common."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Base of every section: unknown settings and values of the wrong type are refused, nothing can be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)
