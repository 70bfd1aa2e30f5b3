"""An embedded AWS with EKS clusters, and who may ask something of them."""

import json
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from holdfast.localcloud.aws import serve
from holdfast.localcloud.home import Keys
from holdfast.localcloud.kubernetes.access import Settings

REGION, ACCOUNT = "us-west-2", "123456789012"
POLICY = "arn:aws:eks::aws:cluster-access-policy/"
PODS: dict[str, Any] = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
    ],
}


class EksLab:
    """The cluster `lab`, whose access entries are by API, in an embedded AWS of its own."""

    def __init__(self, home: Path) -> None:
        self.aws = serve(home=home, hyperpod="simulated")
        self.role("eks", trusted="eks.amazonaws.com")
        ec2 = self.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
        self.subnets = [
            ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.1.{number}.0/24", AvailabilityZone=f"us-west-2{zone}")[
                "Subnet"
            ]["SubnetId"]
            for number, zone in enumerate("ab")
        ]
        self.cluster("lab", bootstrapClusterCreatorAdminPermissions=False)

    def stop(self) -> None:
        self.aws.stop()

    def client(self, service: str, **credentials: str) -> Any:
        """Of the owner, or of other credentials."""
        known = {**self.aws.client_arguments, **credentials}
        config = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=30)
        return boto3.client(service, region_name=REGION, config=config, **known)

    def cluster(self, name: str, client: Any = None, **access: Any) -> dict[str, Any]:
        settings = {"authenticationMode": "API", **access}
        eks = client or self.client("eks")
        eks.create_cluster(
            name=name,
            roleArn=f"arn:aws:iam::{ACCOUNT}:role/eks",
            accessConfig=settings,
            resourcesVpcConfig={"subnetIds": self.subnets},
        )
        self.client("eks").get_waiter("cluster_active").wait(name=name, WaiterConfig={"Delay": 0.05})
        described: dict[str, Any] = self.client("eks").describe_cluster(name=name)["cluster"]
        return described

    def role(
        self,
        name: str,
        *,
        trusted: str = "ec2.amazonaws.com",
        trust: dict[str, Any] | None = None,
        path: str = "/",
        actions: tuple[str, ...] = (),
    ) -> str:
        """The ARN of a new role."""
        plain = {"Effect": "Allow", "Principal": {"Service": trusted}, "Action": "sts:AssumeRole"}
        document = trust or {"Version": "2012-10-17", "Statement": [plain]}
        iam = self.client("iam")
        arn = iam.create_role(RoleName=name, Path=path, AssumeRolePolicyDocument=json.dumps(document))["Role"]["Arn"]
        if actions:
            statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
            rights = {"Version": "2012-10-17", "Statement": [statement]}
            iam.put_role_policy(RoleName=name, PolicyName="rights", PolicyDocument=json.dumps(rights))
        return str(arn)

    def session(self, role: str, name: str = "mary", **more: Any) -> Keys:
        made = self.client("sts").assume_role(RoleArn=role, RoleSessionName=name, **more)["Credentials"]
        return Keys(
            access_key_id=made["AccessKeyId"],
            secret_access_key=made["SecretAccessKey"],
            session_token=made["SessionToken"],
        )

    def admit(self, principal: str, policy: str = "", *, namespaces: tuple[str, ...] = (), **entry: Any) -> None:
        """An access entry of `lab`, with a policy of AWS's by its name."""
        where = {"clusterName": "lab", "principalArn": principal}
        self.client("eks").create_access_entry(**where, **entry)
        if policy:
            scope = {"type": "namespace", "namespaces": list(namespaces)} if namespaces else {"type": "cluster"}
            self.client("eks").associate_access_policy(**where, policyArn=POLICY + policy, accessScope=scope)

    def settings(self, cluster: str = "lab") -> Settings:
        port = self.aws.port
        return Settings(
            cluster_name=cluster,
            region=REGION,
            endpoint=self.aws.endpoint,
            hosts=(f"localhost:{port}", f"127.0.0.1:{port}"),
            pod_endpoint="http://10.1.0.1:5710",
        )
