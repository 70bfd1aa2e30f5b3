"""Write ``docs/environment.schema.json``: ``python -m holdfast.config``."""

from holdfast.config._schema import SCHEMA, schema_text

if __name__ == "__main__":
    SCHEMA.write_text(schema_text())
