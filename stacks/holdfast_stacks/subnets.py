from aws_cdk import Annotations
from aws_cdk import aws_ec2 as ec2
from constructs import Construct


def existing_subnet(scope: Construct, construct_id: str, subnet_id: str) -> ec2.ISubnet:
    """A subnet of which nothing but the id is known, and of which nothing else is asked."""
    subnet = ec2.Subnet.from_subnet_id(scope, construct_id, subnet_id)
    Annotations.of(subnet).acknowledge_warning(
        "@aws-cdk/aws-ec2:noSubnetRouteTableId", "no route is made in it, so its route table is not needed"
    )
    return subnet
