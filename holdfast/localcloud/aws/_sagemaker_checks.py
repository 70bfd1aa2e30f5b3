"""What CreateCluster and UpdateCluster refuse beyond the API's shapes: settings that contradict each other, and
references to things that do not exist. References are looked up through the other services' own APIs."""

from collections import Counter
from ipaddress import IPv4Network
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws._clients import ClientFactory
from holdfast.localcloud.aws._errors import ServiceError


def refuse(message: str) -> ServiceError:
    return ServiceError("ValidationException", message)


def check_settings(settings: dict[str, Any], groups: dict[str, dict[str, Any]]) -> None:
    """Contradictions inside one request."""
    if "RestrictedInstanceGroups" in settings:
        raise _unavailable("RestrictedInstanceGroups")
    orchestrator = settings.get("Orchestrator")
    if orchestrator is not None:
        if len(orchestrator) != 1:
            raise refuse("Exactly one of Eks or Slurm must be specified in Orchestrator.")
        if "Eks" in orchestrator:
            raise _unavailable("Orchestrator.Eks")
    if not groups:
        raise refuse("At least one instance group must be specified in InstanceGroups.")
    for name, group in groups.items():
        if ("InstanceType" in group) == ("InstanceRequirements" in group):
            raise refuse(f"Exactly one of InstanceType or InstanceRequirements must be specified for group '{name}'.")
        if group.get("MinInstanceCount", 0) > group["InstanceCount"]:
            raise refuse(f"MinInstanceCount must not exceed InstanceCount in instance group '{name}'.")
        kinds = Counter(next(iter(config)) for config in group.get("InstanceStorageConfigs", ()))
        for kind in ("FsxLustreConfig", "FsxOpenZfsConfig"):
            if kinds[kind] > 1:
                raise refuse(f"At most one {kind} is allowed in InstanceStorageConfigs of instance group '{name}'.")
            if kinds[kind] and not (group.get("OverrideVpcConfig") or settings.get("VpcConfig")):
                raise refuse(f"{kind} of instance group '{name}' requires a VpcConfig.")
    _check_slurm(orchestrator, groups)


def _check_slurm(orchestrator: dict[str, Any] | None, groups: dict[str, dict[str, Any]]) -> None:
    configured = {name: group["SlurmConfig"] for name, group in groups.items() if "SlurmConfig" in group}
    if not orchestrator:
        if configured:
            raise refuse(f"SlurmConfig of instance group '{next(iter(configured))}' requires Orchestrator.Slurm.")
        return
    missing = [name for name in groups if name not in configured]
    if missing:
        raise refuse(f"SlurmConfig must be specified for instance group '{missing[0]}' when Orchestrator is Slurm.")
    kinds = Counter(config["NodeType"] for config in configured.values())
    if kinds["Controller"] == 0:
        raise refuse("No InstanceGroup with Controller node type found.")
    if kinds["Controller"] > 1:
        raise refuse(f"{kinds['Controller']} Controller Groups found. Exactly one is allowed.")
    if kinds["Login"] > 1:
        raise refuse(f"{kinds['Login']} Login Groups found. At most one is allowed.")
    for name, config in configured.items():
        partitions = config.get("PartitionNames", [])
        if config["NodeType"] == "Compute" and not partitions:
            raise refuse(f"PartitionNames is required for Compute instance group '{name}'.")
        if config["NodeType"] != "Compute" and partitions:
            raise refuse(f"PartitionNames is not allowed for {config['NodeType']} instance group '{name}'.")


class References:
    """Looks up what a cluster refers to."""

    def __init__(self, *, client: ClientFactory) -> None:
        self._client = client

    def check(self, settings: dict[str, Any], groups: dict[str, dict[str, Any]]) -> None:
        """Network, roles and lifecycle scripts of these groups must exist."""
        vpcs = [settings.get("VpcConfig"), *(group.get("OverrideVpcConfig") for group in groups.values())]
        for vpc in vpcs:
            if vpc:
                self._check_vpc(vpc)
        for role in {group["ExecutionRole"] for group in groups.values()}:
            self._check_role(role)
        slurm = bool(settings.get("Orchestrator"))
        for config in {_lifecycle_key(group) for group in groups.values()} - {None}:
            assert config is not None
            self._check_lifecycle(*config, slurm=slurm)

    def networks(self, settings: dict[str, Any], group: dict[str, Any]) -> list[tuple[IPv4Network, str]]:
        """Subnet ranges and zones a group's nodes take addresses from."""
        vpc = group.get("OverrideVpcConfig") or settings.get("VpcConfig")
        if not vpc:  # without a VPC, HyperPod nodes sit in a network of the service's own
            return [(IPv4Network("10.255.0.0/16"), "")]
        return [(IPv4Network(found["CidrBlock"]), found["AvailabilityZone"]) for found in self._subnets(vpc["Subnets"])]

    def _subnets(self, subnet_ids: list[str]) -> list[dict[str, Any]]:
        try:
            found = self._client("ec2").describe_subnets(SubnetIds=subnet_ids)["Subnets"]
        except ClientError as error:
            raise refuse(f"Unable to retrieve subnets. {_message(error)}") from error
        by_id = {subnet["SubnetId"]: subnet for subnet in found}
        return [by_id[subnet_id] for subnet_id in subnet_ids]

    def _check_vpc(self, vpc: dict[str, Any]) -> None:
        vpcs = {subnet["VpcId"] for subnet in self._subnets(vpc["Subnets"])}
        if len(vpcs) > 1:
            raise refuse(f"The subnets {', '.join(vpc['Subnets'])} belong to different VPCs.")
        try:
            groups = self._client("ec2").describe_security_groups(GroupIds=vpc["SecurityGroupIds"])["SecurityGroups"]
        except ClientError as error:
            raise refuse(f"Unable to retrieve security groups. {_message(error)}") from error
        for group in groups:
            if group["VpcId"] not in vpcs:
                raise refuse(f"Security group {group['GroupId']} is not in the VPC of the subnets, {vpcs.pop()}.")

    def _check_role(self, arn: str) -> None:
        try:
            found = self._client("iam").get_role(RoleName=arn.rsplit("/", 1)[-1])["Role"]["Arn"]
        except ClientError:
            found = ""
        if found != arn:
            raise refuse(f"The execution role {arn} does not exist or cannot be assumed by SageMaker.")

    def _check_lifecycle(self, uri: str, scripts: tuple[str, ...], *, slurm: bool) -> None:
        scheme, _, rest = uri.partition("://")
        if scheme != "s3":
            return
        bucket, _, prefix = rest.partition("/")
        prefix = prefix.rstrip("/") + "/" if prefix.strip("/") else ""
        for name in scripts:
            if not self._object_exists(bucket, prefix + name):
                raise refuse(f"Unable to find the lifecycle script '{name}' at {uri}.")
        if slurm and self._object_exists(bucket, f"{prefix}provisioning_parameters.json"):
            raise refuse(
                f"provisioning_parameters.json at {uri} cannot be combined with Orchestrator.Slurm. "
                "Remove the file or use SlurmConfig in no instance group."
            )

    def _object_exists(self, bucket: str, key: str) -> bool:
        try:
            self._client("s3").head_object(Bucket=bucket, Key=key)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] in (403, 404):
                return False
            raise
        return True


def _lifecycle_key(group: dict[str, Any]) -> tuple[str, tuple[str, ...]] | None:
    config = group.get("LifeCycleConfig", {})
    scripts = tuple(config[key] for key in ("OnCreate", "OnInitComplete") if key in config)
    return (config["SourceS3Uri"], scripts) if "SourceS3Uri" in config else None


def _message(error: ClientError) -> str:
    return str(error.response["Error"].get("Message", error))


def _unavailable(what: str) -> ServiceError:
    return ServiceError(
        "NotImplementedException", f"not implemented by the embedded AWS: sagemaker clusters with {what}", 501
    )
