"""Write ``docs/environment.schema.json`` and ``docs/environment.md``: ``make schema``."""

from holdfast.config.pages import REFERENCE, SCHEMA, reference_text, schema_text

if __name__ == "__main__":
    SCHEMA.write_text(schema_text())
    REFERENCE.write_text(reference_text())
