"""JSON Schema of the environment file, for editors."""

import json

from holdfast.config.models import Environment


def schema_text() -> str:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Environment.model_json_schema(),
        "title": "Holdfast environment",
    }
    return json.dumps(schema, indent=2) + "\n"
