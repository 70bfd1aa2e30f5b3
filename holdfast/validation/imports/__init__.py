"""What is imported: the request of a cluster that AWS described, and what that cluster was like."""

from holdfast.validation.imports.origin import Describe, Origin, changes_since, origin_of, read_origin
from holdfast.validation.imports.request import request_of

__all__ = ["Describe", "Origin", "changes_since", "origin_of", "read_origin", "request_of"]
