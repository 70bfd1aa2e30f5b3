"""Rules about what an account says of a cluster and of what is there already (9xx). Who asks it is from_account."""

from holdfast.validation.rules.account import (  # noqa: F401 - each registers its rules
    cluster,
    existing,
)

__all__: list[str] = []
