"""Answers of AWS about a cluster and its resources."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

LIFECYCLE_FILES = ("config.json", "provisioning_parameters.json", "shared_users.txt")
"""What may lie beside a lifecycle script: Holdfast's own settings, and what AWS's samples read."""

Client = Callable[[str], Any]
"""A botocore client of a service."""


@dataclass(frozen=True, kw_only=True)
class ObservedCluster:
    region: str
    account: str
    embedded: bool
    cluster: Mapping[str, Any]
    """DescribeCluster."""
    tags: Mapping[str, str]
    stack: frozenset[str] = frozenset()
    """Physical ids of the resources of the stack that Holdfast made the cluster with; empty for other clusters."""
    subnets: tuple[Mapping[str, Any], ...] = ()
    """Those of the cluster."""
    vpc_subnets: tuple[Mapping[str, Any], ...] = ()
    """All of the VPC."""
    vpc: Mapping[str, Any] | None = None
    security_groups: tuple[Mapping[str, Any], ...] = ()
    route_tables: tuple[Mapping[str, Any], ...] = ()
    endpoints: tuple[Mapping[str, Any], ...] = ()
    flow_logs: bool = False
    file_systems: tuple[Mapping[str, Any], ...] = ()
    associations: tuple[Mapping[str, Any], ...] = ()
    customer_keys: frozenset[str] = frozenset()
    """Which KMS keys of the file systems are not AWS's own."""
    eks: Mapping[str, Any] | None = None
    addons: tuple[str, ...] = ()
    admin_roles: tuple[str, ...] = ()
    scheduler: Mapping[str, Any] | None = None
    quotas: tuple[Mapping[str, Any], ...] = ()
    extensions: tuple[str, ...] = ()
    """Names of those under Slurm."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Of the lifecycle scripts' folder."""
    unasked: tuple[tuple[str, str], ...] = ()
    """(setting, why) of what AWS did not answer."""


def read_cluster(client: Client, *, cluster_name: str, region: str, embedded: bool = False) -> ObservedCluster:
    """Describe a cluster, with ``client`` as factory. Raises: ClientError: no such cluster, or no access."""
    return _Reader(client=client, region=region, embedded=embedded).read(cluster_name)


class _Reader:
    def __init__(self, *, client: Client, region: str, embedded: bool) -> None:
        self._client, self._region, self._embedded = client, region, embedded
        self._unasked: list[tuple[str, str]] = []

    def read(self, cluster_name: str) -> ObservedCluster:
        sagemaker = self._client("sagemaker")
        cluster = sagemaker.describe_cluster(ClusterName=cluster_name)
        cluster.pop("ResponseMetadata", None)
        arn = cluster["ClusterArn"]
        pages = sagemaker.get_paginator("list_tags").paginate(ResourceArn=arn)
        tags = {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}
        stack = self._stack(tags)
        file_systems = self._file_systems(cluster, stack)
        return ObservedCluster(
            region=self._region,
            account=arn.split(":")[4],
            embedded=self._embedded,
            cluster=cluster,
            tags=tags,
            stack=stack,
            file_systems=file_systems,
            associations=self._associations(file_systems),
            customer_keys=self._customer_keys(file_systems),
            files=self._lifecycle_files(cluster),
            **self._network(cluster.get("VpcConfig") or {}),
            **self._eks(cluster),
            extensions=self._extensions(cluster),
            unasked=tuple(self._unasked),
        )

    def _ask(self, setting: str, question: Callable[[], Any], otherwise: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return question()
        except (BotoCoreError, ClientError) as error:
            self._unasked.append((setting, str(error)))
            return otherwise

    def _stack(self, tags: Mapping[str, str]) -> frozenset[str]:
        name = tags.get("holdfast:environment")
        if name is None:
            return frozenset()

        def question() -> frozenset[str]:
            pages = (
                self._client("cloudformation")
                .get_paginator("list_stack_resources")
                .paginate(StackName=f"holdfast-{name}")
            )
            found = (each.get("PhysicalResourceId") for page in pages for each in page["StackResourceSummaries"])
            return frozenset(each for each in found if each)

        return frozenset(self._ask("network", question, frozenset()))

    def _network(self, vpc: Mapping[str, Any]) -> dict[str, Any]:
        subnet_ids = vpc.get("Subnets") or []
        if not subnet_ids:
            return {}
        ec2 = self._client("ec2")

        def question() -> dict[str, Any]:
            subnets = ec2.describe_subnets(SubnetIds=subnet_ids)["Subnets"]
            vpc_id = subnets[0]["VpcId"]
            here = [{"Name": "vpc-id", "Values": [vpc_id]}]
            logs = [{"Name": "resource-id", "Values": [vpc_id]}]
            return {
                "subnets": tuple(subnets),
                "vpc_subnets": tuple(_pages(ec2, "describe_subnets", "Subnets", Filters=here)),
                "vpc": ec2.describe_vpcs(VpcIds=[vpc_id])["Vpcs"][0],
                "security_groups": tuple(
                    ec2.describe_security_groups(GroupIds=vpc["SecurityGroupIds"])["SecurityGroups"]
                ),
                "route_tables": tuple(_pages(ec2, "describe_route_tables", "RouteTables", Filters=here)),
                "endpoints": tuple(_pages(ec2, "describe_vpc_endpoints", "VpcEndpoints", Filters=here)),
                "flow_logs": bool(ec2.describe_flow_logs(Filters=logs)["FlowLogs"]),
            }

        answer: dict[str, Any] = self._ask("network", question, {})
        return answer

    def _file_systems(self, cluster: Mapping[str, Any], stack: frozenset[str]) -> tuple[Mapping[str, Any], ...]:
        mounted = [file_system_id(mount["DnsName"]) for mount in mounts(cluster.get("InstanceGroups", []))]
        ids = list(dict.fromkeys([*mounted, *sorted(each for each in stack if each.startswith("fs-"))]))
        fsx = self._client("fsx")
        asked = (self._ask("storage", partial(fsx.describe_file_systems, FileSystemIds=[one]), {}) for one in ids)
        return tuple(each for answer in asked for each in answer.get("FileSystems", []))

    def _associations(self, file_systems: tuple[Mapping[str, Any], ...]) -> tuple[Mapping[str, Any], ...]:
        ids = [each["FileSystemId"] for each in file_systems if each["FileSystemType"] == "LUSTRE"]
        if not ids:
            return ()

        def question() -> tuple[Mapping[str, Any], ...]:
            filters = [{"Name": "file-system-id", "Values": ids}]
            fsx = self._client("fsx")
            return tuple(_pages(fsx, "describe_data_repository_associations", "Associations", Filters=filters))

        return tuple(self._ask("storage.lustre.datasets", question, ()))

    def _customer_keys(self, file_systems: tuple[Mapping[str, Any], ...]) -> frozenset[str]:
        keys = {each.get("KmsKeyId", "") for each in file_systems}
        asked = sorted(key for key in keys if key and ":alias/aws/" not in key)

        def manager(key: str) -> str:
            answer = self._client("kms").describe_key(KeyId=key)
            return str(answer["KeyMetadata"]["KeyManager"])

        return frozenset(key for key in asked if self._ask("encryption", partial(manager, key), "AWS") == "CUSTOMER")

    def _eks(self, cluster: Mapping[str, Any]) -> dict[str, Any]:
        arn = cluster.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn")
        if arn is None:
            return {}
        name, eks = arn.rpartition("/")[2], self._client("eks")
        described = self._ask("eks", lambda: eks.describe_cluster(name=name)["cluster"], None)
        return {
            "eks": described,
            "addons": self._ask("eks", lambda: tuple(_pages(eks, "list_addons", "addons", clusterName=name)), ()),
            "admin_roles": self._ask("eks.admin_role_arns", lambda: tuple(_admin_roles(eks, name)), ()),
            "scheduler": self._ask("eks.task_governance", lambda: self._scheduler(cluster["ClusterArn"]), None),
            "quotas": self._ask("eks.task_governance.teams", lambda: tuple(self._quotas(cluster["ClusterArn"])), ()),
        }

    def _extensions(self, cluster: Mapping[str, Any]) -> tuple[str, ...]:
        if "Slurm" not in cluster.get("Orchestrator", {}):
            return ()
        asked = {"ClusterArn": cluster["ClusterArn"]}

        def question() -> tuple[str, ...]:
            found = _pages(self._client("sagemaker"), "list_cluster_extensions", "Extensions", **asked)
            return tuple(each["ExtensionName"] for each in found)

        return tuple(self._ask("slurm.observability_extension", question, ()))

    def _scheduler(self, cluster_arn: str) -> Mapping[str, Any] | None:
        sagemaker = self._client("sagemaker")
        found = sagemaker.list_cluster_scheduler_configs(ClusterArn=cluster_arn)["ClusterSchedulerConfigSummaries"]
        if not found:
            return None
        config_id = found[0]["ClusterSchedulerConfigId"]
        described = sagemaker.describe_cluster_scheduler_config(ClusterSchedulerConfigId=config_id)
        config: Mapping[str, Any] = described["SchedulerConfig"]
        return config

    def _quotas(self, cluster_arn: str) -> Iterator[Mapping[str, Any]]:
        sagemaker = self._client("sagemaker")
        for page in sagemaker.get_paginator("list_compute_quotas").paginate(ClusterArn=cluster_arn):
            for found in page["ComputeQuotaSummaries"]:
                yield sagemaker.describe_compute_quota(ComputeQuotaId=found["ComputeQuotaId"])

    def _lifecycle_files(self, cluster: Mapping[str, Any]) -> dict[str, str]:
        groups = cluster.get("InstanceGroups", [])
        uri = next((group["LifeCycleConfig"]["SourceS3Uri"] for group in groups if _has_scripts(group)), "")
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        if not bucket or not uri.startswith("s3://"):
            return {}
        return dict(self._ask("lifecycle", lambda: dict(self._objects(bucket, prefix)), {}))

    def _objects(self, bucket: str, prefix: str) -> Iterator[tuple[str, str]]:
        s3, folder = self._client("s3"), f"{prefix.strip('/')}/".lstrip("/")
        for name in LIFECYCLE_FILES:
            key = folder + name
            there = s3.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1).get("Contents", [])
            if any(each["Key"] == key for each in there):
                yield name, s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode()


def mounts(groups: Any) -> Iterator[Mapping[str, Any]]:
    """Mounted FSx file systems, Lustre first."""
    configs = [config for group in groups for config in group.get("InstanceStorageConfigs") or []]
    for kind in ("FsxLustreConfig", "FsxOpenZfsConfig"):
        yield from (config[kind] for config in configs if kind in config)


def file_system_id(dns_name: str) -> str:
    """Id in ``fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com``."""
    return dns_name.partition(".")[0]


def _has_scripts(group: Mapping[str, Any]) -> bool:
    return bool((group.get("LifeCycleConfig") or {}).get("SourceS3Uri"))


def _admin_roles(eks: Any, cluster_name: str) -> Iterator[str]:
    for arn in _pages(eks, "list_access_entries", "accessEntries", clusterName=cluster_name):
        policies = _pages(
            eks, "list_associated_access_policies", "associatedAccessPolicies",
            clusterName=cluster_name, principalArn=arn,
        )  # fmt: skip
        if ":role/" in arn and any(each["policyArn"].endswith("/AmazonEKSClusterAdminPolicy") for each in policies):
            yield str(arn)


def _pages(client: Any, operation: str, items: str, **parameters: Any) -> Iterator[Any]:
    if client.can_paginate(operation):
        for page in client.get_paginator(operation).paginate(**parameters):
            yield from page[items]
        return
    while True:
        page = getattr(client, operation)(**parameters)
        yield from page[items]
        if not page.get("NextToken"):
            return
        parameters["NextToken"] = page["NextToken"]
