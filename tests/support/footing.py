"""What clusters of the labs stand on: a role that may do what nodes do, and a network that leads to S3."""

import json
from typing import Any

SERVICES = ["sagemaker", "eks", "lambda", "pods.eks", "monitoring.rds", "vpc-flow-logs", "grafana"]
TRUST: dict[str, Any] = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": [f"{name}.amazonaws.com" for name in SERVICES]},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
    ],
}
RIGHTS: dict[str, Any] = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": ["ec2:*", "ecr:*", "logs:*", "kms:*", "eks-auth:*", "s3:*"], "Resource": "*"}
    ],
}


def service_role(iam: Any, name: str) -> str:
    """The ARN of a role that services may assume and that lets nodes come."""
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
    iam.put_role_policy(RoleName=name, PolicyName="nodes", PolicyDocument=json.dumps(RIGHTS))
    return str(made)


def ready_network(ec2: Any, *, vpc: str, group: str, region: str = "us-west-2") -> None:
    """Let a VPC's subnets reach S3, and the members of a security group each other."""
    tables = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"]
    ec2.create_vpc_endpoint(
        VpcId=vpc,
        ServiceName=f"com.amazonaws.{region}.s3",
        RouteTableIds=[table["RouteTableId"] for table in tables],
    )
    everything = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=everything)
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=everything)
