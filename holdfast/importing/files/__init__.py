"""Files and options that say a cluster, as AWS's samples and commands pass them, read strictly."""

from holdfast.importing.files._command import cluster_of
from holdfast.importing.files._json import NotUsableError, read_json
from holdfast.importing.files._recognise import Given, together

__all__ = ["Given", "NotUsableError", "cluster_of", "read_json", "together"]
