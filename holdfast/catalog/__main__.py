"""``python -m holdfast.catalog``: write what is known of instance types."""

from holdfast.catalog.refresh import write_instance_types

write_instance_types()
