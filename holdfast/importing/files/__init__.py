"""Files of AWS's samples and answers, parsed strictly."""

from holdfast.importing.files.json import NotUsableError
from holdfast.importing.files.recognise import cluster_of, together
from holdfast.importing.files.shape import request_shape

__all__ = ["NotUsableError", "cluster_of", "request_shape", "together"]
