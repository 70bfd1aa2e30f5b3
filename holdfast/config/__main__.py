"""Write the JSON Schema and the page of the environment file from the models: ``make schema``."""

from holdfast.config.pages import REFERENCE, SCHEMA, reference_text, schema_text

if __name__ == "__main__":
    SCHEMA.write_text(schema_text())
    REFERENCE.write_text(reference_text())
