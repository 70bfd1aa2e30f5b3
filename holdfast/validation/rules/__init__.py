"""
All rules, a package per area; importing this registers them.

Rules are pure: no file, no clock, no account, no environment file.
"""

from holdfast.validation.rules import (  # noqa: F401 - each registers its rules
    account,
    cluster,
    eks,
    iam,
    lifecycle,
    network,
    slurm,
    source,
    storage,
    templates,
)

__all__: list[str] = []
