"""Network of an EKS control plane: checks of its subnets, and the cluster security group."""

from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.eks import errors

MIN_ZONES = 2


class ClusterNetwork:
    """EC2 resources of clusters."""

    def __init__(self, *, client: ClientFactory) -> None:
        self._client = client

    def place(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return the network as DescribeCluster shows it (``config``), and the VPC's range (``cidr``)."""
        config = {
            "endpointPublicAccess": True,
            "endpointPrivateAccess": False,
            "securityGroupIds": [],
            **given,
        }
        if config["endpointPublicAccess"]:
            config.setdefault("publicAccessCidrs", ["0.0.0.0/0"])
        self.check_endpoints(config)
        vpc = self._check_subnets(given.get("subnetIds", []))
        self._check_groups(config["securityGroupIds"], vpc)
        config |= {"vpcId": vpc, "clusterSecurityGroupId": self._group(name, vpc)}
        cidr = self._client("ec2").describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["CidrBlock"]
        return {"config": config, "cidr": str(cidr)}

    def check_change(self, given: dict[str, Any]) -> None:
        if given.get("subnetIds"):
            vpc = self._check_subnets(given["subnetIds"])
            self._check_groups(given.get("securityGroupIds", []), vpc)

    @staticmethod
    def check_endpoints(config: dict[str, Any]) -> None:
        if not config["endpointPublicAccess"] and not config["endpointPrivateAccess"]:
            raise errors.invalid_parameter("Private and public endpoint access cannot be false")

    def release(self, group: str) -> None:
        try:
            self._client("ec2").delete_security_group(GroupId=group)
        except ClientError:
            return  # in use, or gone: EKS leaves it behind too

    def _check_subnets(self, subnets: list[str]) -> str:
        if not subnets:
            raise errors.invalid_parameter("subnetIds must not be empty")
        try:
            found = self._client("ec2").describe_subnets(SubnetIds=subnets)["Subnets"]
        except ClientError as error:
            raise errors.invalid_parameter(error.response["Error"].get("Message", str(error))) from error
        vpcs = {subnet["VpcId"] for subnet in found}
        if len(vpcs) > 1:
            raise errors.invalid_parameter(f"The subnets {', '.join(subnets)} are in different VPCs.")
        if len({subnet["AvailabilityZone"] for subnet in found}) < MIN_ZONES:
            raise errors.invalid_parameter("Subnets specified must be in at least two different AZs")
        return str(vpcs.pop())

    def _check_groups(self, groups: list[str], vpc: str) -> None:
        if not groups:
            return
        try:
            found = self._client("ec2").describe_security_groups(GroupIds=groups)["SecurityGroups"]
        except ClientError as error:
            raise errors.invalid_parameter(error.response["Error"].get("Message", str(error))) from error
        for group in found:
            if group["VpcId"] != vpc:
                raise errors.invalid_parameter(f"Security group {group['GroupId']} is not in VPC {vpc}.")

    def _group(self, name: str, vpc: str) -> str:
        ec2, label = self._client("ec2"), f"eks-cluster-sg-{name}"
        filters = [{"Name": "vpc-id", "Values": [vpc]}, {"Name": "group-name", "Values": [label]}]
        left = ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
        if left:
            return str(left[0]["GroupId"])
        made = ec2.create_security_group(
            GroupName=label,
            Description="EKS created security group applied to ENI that is attached to EKS Control Plane",
            VpcId=vpc,
        )
        return str(made["GroupId"])
