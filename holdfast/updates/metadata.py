"""
The environment that a stack was made of, in the metadata of its template: what a file is compared with.

It is text and not an object, because the CDK leaves nulls and empty lists out of objects.
"""

import json
from collections.abc import Mapping
from typing import Any

from holdfast.config import Environment

METADATA_KEY = "Holdfast::Environment"


def environment_metadata(environment: Environment) -> dict[str, str]:
    """What the Metadata section of the environment's template has to contain."""
    document = environment.model_dump(mode="json")
    return {METADATA_KEY: json.dumps(document, sort_keys=True, separators=(",", ":"))}


def environment_of(template: Mapping[str, Any]) -> dict[str, Any] | None:
    """The environment that a template was made of; None when it does not say, as templates of older versions."""
    text = (template.get("Metadata") or {}).get(METADATA_KEY)
    if not isinstance(text, str):
        return None
    document: dict[str, Any] = json.loads(text)
    return document
