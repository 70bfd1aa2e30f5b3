"""An availability zone by its name, or by its id, which is the same in all accounts."""

from dataclasses import dataclass

from aws_cdk import CfnResource, Fn
from aws_cdk import aws_ec2 as ec2


@dataclass(frozen=True, kw_only=True)
class Zone:
    """Where a subnet is. Names of zones differ between accounts: capacity is offered by their ids."""

    name: str | None
    id: str | None

    @property
    def is_said(self) -> bool:
        """Whether there is such a zone."""
        return self.name is not None or self.id is not None

    @property
    def unnamed(self) -> str:
        """What stands for the name of a zone that is known by its id: the CDK wants one, ``apply`` takes it out."""
        return Fn.select(0, Fn.get_azs())

    def apply(self, subnet: ec2.ISubnet) -> ec2.ISubnet:
        """Put a subnet into the zone, where it is known by its id."""
        resource = subnet.node.default_child
        if self.id is not None and isinstance(resource, CfnResource):
            resource.add_property_deletion_override("AvailabilityZone")
            resource.add_property_override("AvailabilityZoneId", self.id)
        return subnet
