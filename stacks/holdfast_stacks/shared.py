import inspect
from typing import Any

from pydantic import BaseModel


def shared(settings: BaseModel, target: Any) -> dict[str, Any]:
    """Return the settings that a construct takes under the same name."""
    taken = inspect.signature(target.__init__).parameters  # the metaclass of constructs hides that of the class
    return {name: getattr(settings, name) for name in type(settings).model_fields if name in taken}
