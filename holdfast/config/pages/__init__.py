"""The page of the environment file and its JSON Schema, from the models."""

from holdfast.config.pages.reference import reference_text
from holdfast.config.pages.schema import schema_text
from holdfast.config.pages.site import site_url

__all__ = ["reference_text", "schema_text", "site_url"]
