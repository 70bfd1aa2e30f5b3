from aws_cdk import aws_ec2 as ec2
from constructs import Construct

PREFIXES = {"mlflow": "aws.sagemaker"}
"""Of services whose names do not begin with ``com.amazonaws``. An MLflow App is ``aws.sagemaker.<region>.mlflow``
(SageMaker developer guide, "Connecting to an MLflow tracking server through an Interface VPC Endpoint")."""

HTTPS = 443


class InterfaceEndpoints(Construct):
    """Endpoints in the nodes' subnet, with private names, for HTTPS from one security group."""

    def __init__(
        self, scope: Construct, construct_id: str, *, vpc: ec2.IVpc, subnet: ec2.ISubnet, nodes: ec2.ISecurityGroup
    ) -> None:
        """Define the place of endpoints; ``vpc`` needs DNS support and DNS host names."""
        super().__init__(scope, construct_id)
        self._vpc, self._subnet = vpc, subnet
        self._group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, description="Endpoints of AWS services", allow_all_outbound=False
        )
        self._group.add_ingress_rule(nodes, ec2.Port.tcp(HTTPS), "HTTPS from nodes")

    def add(self, service: str) -> None:
        """Make an endpoint of a service, such as ``ecr.api``, once."""
        if self.node.try_find_child(service) is None:
            ec2.InterfaceVpcEndpoint(
                self,
                service,
                vpc=self._vpc,
                service=ec2.InterfaceVpcEndpointAwsService(service, PREFIXES.get(service)),
                subnets=ec2.SubnetSelection(subnets=[self._subnet]),
                security_groups=[self._group],
                open=False,
                private_dns_enabled=True,
            )
