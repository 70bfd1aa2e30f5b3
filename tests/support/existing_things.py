"""What a team has already, made on an embedded AWS: whatever an environment names, under the names that it then has."""

import json
from collections.abc import Callable
from typing import Any

from buckets import make_bucket
from team_things import node_role


class ExistingThings:
    """
    Makes what an environment names, and writes it into the environment.

    Args:
        client: A boto3 client by the name of its service.
        network: Of what has one: vpc_id, subnet_id, security_group_id.
    """

    def __init__(self, client: Callable[[str], Any], network: dict[str, Any]) -> None:
        self._client, self._network = client, network

    def make(self, found: dict[str, Any]) -> None:
        """All that is named."""
        self._networks(found)
        self._roles(found)
        storage, lifecycle = found["storage"], found.get("lifecycle", {})
        for place in (storage.get("data"), lifecycle.get("bucket")):
            if place is not None:
                place["bucket_name"] = self._bucket(place["bucket_name"], found)
        configs = [group.get("life_cycle_config") for group in found["cluster"]["instance_groups"]]
        for config in (lifecycle.get("existing"), *configs):
            if config is not None:
                self._scripts(config, found)
        for dataset in storage.get("lustre", {}).get("datasets", ()):
            if "s3_uri" in dataset:
                name, _, prefix = dataset["s3_uri"].removeprefix("s3://").partition("/")
                dataset["s3_uri"] = f"s3://{self._bucket(name, found)}/{prefix}"
        if "existing" in storage.get("lustre", {}):
            storage["lustre"]["existing"] = self._lustre()
        if "existing" in storage.get("home", {}):
            storage["home"]["existing"] = self._home()
        if "existing" in found.get("eks", {}):
            self._eks(found["eks"]["existing"]["cluster"])
        if "permissions_boundary" in found:
            self._policy(found["permissions_boundary"])

    def _networks(self, found: dict[str, Any]) -> None:
        existing = found["network"].get("existing")
        if existing is None:
            return
        wanted = {name: self._network[name] for name in existing if name in self._network}
        wanted |= {name: [] for name in existing if name.startswith("additional")}
        found["network"]["existing"] = wanted

    def _roles(self, found: dict[str, Any]) -> None:
        cluster = found["cluster"]
        for section in (cluster, *cluster["instance_groups"]):
            for setting in ("execution_role_arn", "cluster_role_arn"):
                if setting in section:
                    section[setting] = self._role(section[setting].rpartition("/")[2])

    def _role(self, name: str) -> str:
        iam = self._client("iam")
        names = [role["RoleName"] for role in iam.list_roles()["Roles"]]
        if name not in names:
            node_role(iam, name)
        return str(iam.get_role(RoleName=name)["Role"]["Arn"])

    def _policy(self, name: str) -> None:
        document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
        self._client("iam").create_policy(PolicyName=name, PolicyDocument=json.dumps(document))

    def _bucket(self, name: str, found: dict[str, Any]) -> str:
        s3, own = self._client("s3"), f"{name}-{found['name']}"
        if own not in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]:
            make_bucket(s3, own, region=found["region"])
        return own

    def _scripts(self, config: dict[str, str], found: dict[str, Any]) -> None:
        name, _, prefix = config["source_s3_uri"].removeprefix("s3://").partition("/")
        own = self._bucket(name, found)
        for hook in ("on_create", "on_init_complete"):
            if hook in config:
                self._client("s3").put_object(Bucket=own, Key=f"{prefix}/{config[hook]}", Body=b"#!/bin/bash\n")
        config["source_s3_uri"] = f"s3://{own}/{prefix}"

    def _lustre(self) -> dict[str, str]:
        made = self._client("fsx").create_file_system(
            FileSystemType="LUSTRE",
            FileSystemTypeVersion="2.15",
            StorageCapacity=1200,
            SubnetIds=[self._network["subnet_id"]],
            SecurityGroupIds=[self._network["security_group_id"]],
            LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
        )["FileSystem"]
        return {
            "file_system_id": made["FileSystemId"],
            "mount_name": made["LustreConfiguration"]["MountName"],
            "dns_name": made["DNSName"],
        }

    def _home(self) -> dict[str, str]:
        made = self._client("fsx").create_file_system(
            FileSystemType="OPENZFS",
            StorageCapacity=64,
            SubnetIds=[self._network["subnet_id"]],
            SecurityGroupIds=[self._network["security_group_id"]],
            OpenZFSConfiguration={"DeploymentType": "SINGLE_AZ_2", "ThroughputCapacity": 160},
        )["FileSystem"]
        return {"file_system_id": made["FileSystemId"], "dns_name": made["DNSName"]}

    def _eks(self, name: str) -> None:
        network = self._network
        self._client("eks").create_cluster(
            name=name,
            version="1.34",
            roleArn=self._role("platform-eks"),
            accessConfig={"authenticationMode": "API"},
            resourcesVpcConfig={"subnetIds": network["control_plane_subnet_ids"]},
        )
