"""What is imported: the request of a cluster that AWS described, and what that cluster was like."""

from holdfast.validation.imports._origin import Describe, Origin, changes_since, origin_of, read_origin
from holdfast.validation.imports._request import request_of

__all__ = ["Describe", "Origin", "changes_since", "origin_of", "read_origin", "request_of"]
