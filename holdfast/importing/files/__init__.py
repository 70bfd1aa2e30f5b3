"""Files and options of AWS's samples and commands, parsed strictly."""

from holdfast.importing.files.command import cluster_of
from holdfast.importing.files.json import NotUsableError
from holdfast.importing.files.recognise import together
from holdfast.importing.files.shape import request_shape

__all__ = ["NotUsableError", "cluster_of", "request_shape", "together"]
