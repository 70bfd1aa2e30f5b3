"""Availability zone by name, or by id, which is the same in all accounts."""

from dataclasses import dataclass

from aws_cdk import CfnResource, Fn
from aws_cdk import aws_ec2 as ec2


@dataclass(frozen=True, kw_only=True)
class Zone:
    """Zone of a subnet. Names differ between accounts: capacity is offered by id."""

    name: str | None
    id: str | None

    @property
    def is_given(self) -> bool:
        return self.name is not None or self.id is not None

    @property
    def unnamed(self) -> str:
        """Placeholder name for a zone known by id, which ``apply`` removes."""
        return Fn.select(0, Fn.get_azs())

    def apply(self, subnet: ec2.ISubnet) -> ec2.ISubnet:
        resource = subnet.node.default_child
        if self.id is not None and isinstance(resource, CfnResource):
            resource.add_property_deletion_override("AvailabilityZone")
            resource.add_property_override("AvailabilityZoneId", self.id)
        return subnet
