"""Reader of extensions of a cluster."""

from collections.abc import Iterator

from holdfast.catalog import EXTENSION
from holdfast.validation.cloudformation import Resource, Values
from holdfast.validation.model import Extension
from holdfast.validation.readers.properties import read_item


def extensions(values: Values, hyperpod: Resource) -> Iterator[Extension]:
    for each in values.linked([EXTENSION], ["ClusterArn"], hyperpod).found:
        yield read_item(Extension, values.properties(each))
