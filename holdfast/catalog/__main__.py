"""``python -m holdfast.catalog``: write the instance types."""

from holdfast.catalog.refresh import write_instance_types

write_instance_types()
