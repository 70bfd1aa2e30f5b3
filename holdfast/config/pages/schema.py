"""JSON Schema of the environment file, for editors."""

import json

from holdfast.config.models import Environment
from holdfast.config.pages.site import site_url


def schema_text() -> str:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **({"$id": f"{site}/environment.schema.json"} if (site := site_url()) else {}),
        **Environment.model_json_schema(),
        "title": "Holdfast environment",
    }
    return json.dumps(schema, indent=2) + "\n"
