"""Rules about volumes, FSx file systems, data repositories and databases (6xx)."""

from holdfast.validation.rules.storage import (  # noqa: F401 - each registers its rules
    backups,
    data_repositories,
    lustre,
    reach,
    volumes,
)

__all__: list[str] = []
