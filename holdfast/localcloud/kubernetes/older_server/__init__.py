"""Manifests of newer versions on an older API server, and the indexes of Indexed Jobs (1.22)."""

from holdfast.localcloud.kubernetes.older_server.indexes import Indexes
from holdfast.localcloud.kubernetes.older_server.manifests import COMPLETIONS_LABEL, IndexedJobError, for_server

__all__ = ["COMPLETIONS_LABEL", "IndexedJobError", "Indexes", "for_server"]
