"""Imported clusters: the creation request of a described cluster, and its state at the import."""

from holdfast.validation.imports.origin import Describe, Origin, changes_since, origin_of, read_origin
from holdfast.validation.imports.request import request_of

__all__ = ["Describe", "Origin", "changes_since", "origin_of", "read_origin", "request_of"]
