"""Rules about volumes, FSx file systems, data repositories and databases (6xx)."""

from holdfast.validation.rules.storage import (  # noqa: F401 - each registers its rules
    attributes,
    backups,
    data_repositories,
    databases,
    lustre,
    names,
    ports,
    reach,
    volumes,
)

__all__: list[str] = []
