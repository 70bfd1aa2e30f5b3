import inspect
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel


def shared(settings: BaseModel, target: Callable[..., Any]) -> dict[str, Any]:
    """Return the settings that a construct takes under the same name."""
    taken = inspect.signature(target).parameters
    return {name: getattr(settings, name) for name in type(settings).model_fields if name in taken}
