"""
Rules that judge what AWS's pages and schemas say of any resource, in environment files and in templates.

A module per subject; importing one registers its rules.
"""

from holdfast.validation.judges import (  # noqa: F401 - each registers its rules
    _keys,
    _kubernetes_parts,
    _modes,
    _network_more,
    _network_paths,
    _order,
    _order_eks,
    _policies,
    _properties,
    _quotas,
    _references,
    _regions,
    _role_needs,
    _scripts,
    _sharing,
    _storage_parts,
    _templates,
)
