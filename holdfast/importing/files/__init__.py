"""Files and options of AWS's samples and commands, parsed strictly."""

from holdfast.importing.files.command import cluster_of
from holdfast.importing.files.json import NotUsableError, read_json
from holdfast.importing.files.recognise import ClusterDefinition, together
from holdfast.importing.files.shape import request_shape

__all__ = ["ClusterDefinition", "NotUsableError", "cluster_of", "read_json", "request_shape", "together"]
