"""Generated pages: docs/environment.md and the JSON Schema."""

from holdfast.config.pages.reference import REFERENCE, reference_text
from holdfast.config.pages.schema import SCHEMA, schema_text

__all__ = ["REFERENCE", "SCHEMA", "reference_text", "schema_text"]
