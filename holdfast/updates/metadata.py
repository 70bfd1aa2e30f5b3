"""Environment in the metadata of a stack's template, as text: the CDK drops nulls and empty lists of objects."""

import json
from collections.abc import Mapping
from typing import Any

from holdfast.config import Environment

METADATA_KEY = "Holdfast::Environment"


def environment_metadata(environment: Environment) -> dict[str, str]:
    document = environment.model_dump(mode="json")
    return {METADATA_KEY: json.dumps(document, sort_keys=True, separators=(",", ":"))}


def environment_of(template: Mapping[str, Any]) -> dict[str, Any] | None:
    """Environment in a template; None if absent."""
    text = (template.get("Metadata") or {}).get(METADATA_KEY)
    if not isinstance(text, str):
        return None
    document: dict[str, Any] = json.loads(text)
    return document
