"""Checks of CreateCluster and UpdateCluster against other services: networks, roles, lifecycle scripts, EKS, alarms."""

from ipaddress import IPv4Network
from typing import Any

from botocore.exceptions import ClientError

from holdfast.catalog import instance_types
from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import refuse
from holdfast.localcloud.aws.footing import SubnetRoutes, check_role
from holdfast.localcloud.aws.sagemaker.lifecycle import incompatible_ami, is_incompatible, needs_no_script

EKS_AUTHENTICATION = ("API", "API_AND_CONFIG_MAP")
EKS_VERSIONS = ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35")
"""SageMaker developer guide, "Prerequisites for EKS orchestration", read on 2026-11-20."""


class References:
    def __init__(self, *, client: ClientFactory, account: str, region: str) -> None:
        self._client, self._place = client, (account, region)

    def check(self, settings: dict[str, Any], groups: dict[str, dict[str, Any]]) -> None:
        vpcs = [settings.get("VpcConfig"), *(group.get("OverrideVpcConfig") for group in groups.values())]
        for vpc in vpcs:
            if vpc:
                self._check_vpc(vpc)
        for role in {group["ExecutionRole"] for group in groups.values()}:
            self._check_execution_role(role, settings, [g for g in groups.values() if g["ExecutionRole"] == role])
        orchestrator = settings.get("Orchestrator") or {}
        if "Eks" in orchestrator:
            self._check_eks(orchestrator["Eks"]["ClusterArn"])
        if settings.get("ClusterRole"):
            self._check_role(settings["ClusterRole"])
        for group in groups.values():
            for key in ("ScheduledUpdateConfig", "AutoPatchConfig"):
                self.check_alarms(group.get(key, {}).get("DeploymentConfig", {}))
        self.check_images(settings, groups)
        slurm = "Slurm" in orchestrator
        for config in {_lifecycle_key(group) for group in groups.values()} - {None}:
            assert config is not None
            self._check_lifecycle(*config, slurm=slurm)
        for name, group in groups.items():
            self._check_ways(name, group, settings)

    def check_images(self, settings: dict[str, Any], groups: dict[str, dict[str, Any]]) -> None:
        """Check that an AMI of the account, if EC2 has it, is new enough to make a node ready."""
        for name, group in groups.items():
            image = group.get("ImageId", "default")
            if image == "default" or not needs_no_script(settings, group):
                continue
            try:
                found = self._client("ec2").describe_images(ImageIds=[image])["Images"]
            except ClientError:
                continue  # somebody else's, and nothing of it is known
            if any(is_incompatible(each) for each in found):
                raise refuse(incompatible_ami(name, image))

    def check_alarms(self, deployment: dict[str, Any]) -> None:
        names = [alarm["AlarmName"] for alarm in deployment.get("AutoRollbackConfiguration", ())]
        if not names:
            return
        kinds = ["MetricAlarm", "CompositeAlarm"]
        reported = self._client("cloudwatch").describe_alarms(AlarmNames=names, AlarmTypes=kinds)
        known = {alarm["AlarmName"] for key in ("MetricAlarms", "CompositeAlarms") for alarm in reported.get(key, ())}
        missing = [name for name in names if name not in known]
        if missing:
            raise refuse(f"The CloudWatch alarm '{missing[0]}' of AutoRollbackConfiguration does not exist.")

    def networks(self, settings: dict[str, Any], group: dict[str, Any]) -> list[tuple[IPv4Network, str]]:
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

    def _check_eks(self, arn: str) -> None:
        try:
            found = self._client("eks").describe_cluster(name=arn.rsplit("/", 1)[-1])["cluster"]
        except ClientError:
            found = {}
        if found.get("arn") != arn:
            raise refuse(f"Unable to find the EKS cluster {arn}.")
        if found["status"] not in ("ACTIVE", "UPDATING"):
            raise refuse(f"EKS cluster {arn} is in {found['status']} status. It must be ACTIVE.")
        mode = found["accessConfig"]["authenticationMode"]
        if mode not in EKS_AUTHENTICATION:
            allowed = " or ".join(EKS_AUTHENTICATION)
            raise refuse(f"EKS cluster {arn} has authentication mode {mode}. It must be {allowed}.")
        if found["version"] not in EKS_VERSIONS:
            allowed = f"{EKS_VERSIONS[0]} to {EKS_VERSIONS[-1]}"
            raise refuse(f"EKS cluster {arn} has Kubernetes version {found['version']}. Supported are {allowed}.")

    def _check_execution_role(self, role: str, settings: dict[str, Any], groups: list[dict[str, Any]]) -> None:
        networks = [group.get("OverrideVpcConfig") or settings.get("VpcConfig") for group in groups]
        scripts = {
            (bucket, f"{prefix}{name}")
            for config in {_lifecycle_key(group) for group in groups} - {None}
            if config is not None and config[0].startswith("s3://")
            for bucket, prefix in [_folder(config[0])]
            for name in config[1]
        }
        for number, vpc in enumerate(networks):
            if vpc not in networks[:number]:
                check_role(
                    role,
                    client=self._client,
                    place=self._place,
                    vpc=vpc,
                    scripts=scripts,
                    eks="Eks" in (settings.get("Orchestrator") or {}),
                )

    def _check_ways(self, name: str, group: dict[str, Any], settings: dict[str, Any]) -> None:
        """Check the network of a group's nodes. Words: HyperPod's events; that they reject the request is assumed."""
        vpc = group.get("OverrideVpcConfig") or settings.get("VpcConfig")
        if not vpc:
            return
        ways = SubnetRoutes(client=self._client, subnets=vpc["Subnets"], groups=vpc["SecurityGroupIds"])
        nowhere = ways.no_way_to_s3() if _lifecycle_key(group) else ""
        if nowhere:
            raise refuse(
                f"Instance bootstrap failed for instance group '{name}', likely because of customer network "
                f"misconfiguration. {nowhere}"
            )
        alone = ways.not_among_themselves() if _has_efa(group) else ""
        if alone:
            raise refuse(
                "EFA health checks did not run successfully. Ensure that your VPC and security groups are properly "
                f"configured before attempting to create a new cluster. Instance group '{name}': {alone} does not "
                "allow all inbound and outbound traffic to and from itself."
            )

    def _check_role(self, arn: str) -> None:
        try:
            found = self._client("iam").get_role(RoleName=arn.rsplit("/", 1)[-1])["Role"]["Arn"]
        except ClientError:
            found = ""
        if found != arn:
            raise refuse(f"The execution role {arn} does not exist or cannot be assumed by SageMaker.")

    def _check_lifecycle(self, uri: str, scripts: tuple[str, ...], *, slurm: bool) -> None:
        if not uri.startswith("s3://"):
            return
        bucket, prefix = _folder(uri)
        for name in scripts:
            if not self._object_exists(bucket, prefix + name):
                raise refuse(f"Unable to find the lifecycle script '{name}' at {uri}.")
        if slurm and self._object_exists(bucket, f"{prefix}provisioning_parameters.json"):
            # SageMaker developer guide, sagemaker-hyperpod-slurm-api-config-migration, "Troubleshooting"
            raise refuse(
                "The LifeCycleConfig cannot include both a SLURM Orchestrator Config and a "
                "provisioning_parameters.json file simultaneously."
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


def _folder(uri: str) -> tuple[str, str]:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    return bucket, prefix.rstrip("/") + "/" if prefix.strip("/") else ""


def _has_efa(group: dict[str, Any]) -> bool:
    kinds = [group.get("InstanceType", ""), *group.get("InstanceRequirements", {}).get("InstanceTypes", ())]
    known = instance_types()
    return any(kind in known and known[kind].efa_interfaces > 0 for kind in kinds)


def _message(error: ClientError) -> str:
    return str(error.response["Error"].get("Message", error))
