"""The CloudFormation registry: resource types of a region and their schemas, as cfn-lint carries them."""

from holdfast.localcloud.aws.cloudformation.registry.foresight import foreseeable, foreseen
from holdfast.localcloud.aws.cloudformation.registry.properties import (
    attributes,
    paths,
    prepared,
    replaced_by,
    tag_property,
    value_at,
)
from holdfast.localcloud.aws.cloudformation.registry.schemas import available, schema
from holdfast.localcloud.aws.cloudformation.registry.validation import violations

__all__ = [
    "attributes",
    "available",
    "foreseeable",
    "foreseen",
    "paths",
    "prepared",
    "replaced_by",
    "schema",
    "tag_property",
    "value_at",
    "violations",
]
