"""From answers of AWS to an environment file: all settings that AWS knows come back, and the rest is said."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from known_settings import known_to_aws

from holdfast.config import Environment, Team, load
from holdfast.config import InstanceGroup as Group
from holdfast.importing import Draft, ObservedCluster, from_observed, render

ENVIRONMENTS = Path(__file__).parents[3] / "environments"
VPC, SUBNET, CONTROL_PLANE = "vpc-0123456789abcdef0", "subnet-0123456789abcdef0", "subnet-0123456789abcdef1"
SECURITY_GROUP, TABLE = "sg-0123456789abcdef0", "rtb-0123456789abcdef0"
LUSTRE, HOME, BUCKET = "fs-0123456789abcdef0", "fs-0123456789abcdef1", "holdfast-data"
KEY = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
SECRET = "arn:aws:secretsmanager:us-west-2:111122223333:secret:slurm-AbCdEf"
BUNDLE = "s3://sagemaker-x/lifecycle/1"
HOOKS = {
    "custom": {"SourceS3Uri": BUNDLE, "OnCreate": "on_create.sh"},
    "extension": {"SourceS3Uri": BUNDLE, "OnInitComplete": "on_init_complete.sh"},
    "none": None,
}
S3_ENDPOINT = {
    "VpcEndpointId": "vpce-1",
    "VpcEndpointType": "Gateway",
    "ServiceName": "com.amazonaws.us-west-2.s3",
    "RouteTableIds": [TABLE],
}
SELF = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": SECURITY_GROUP}]}]


def dns(fs_id: str) -> str:
    return f"{fs_id}.fsx.us-west-2.amazonaws.com"


def present(**settings: Any) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value not in (None, (), {}, [])}


def deployment(config: Any) -> dict[str, Any] | None:
    if config is None:
        return None
    sizes = {
        "MaximumBatchSize": config.maximum_batch_size,
        "RollbackMaximumBatchSize": config.rollback_maximum_batch_size,
    }
    policy = {key: {"Type": size.type, "Value": size.value} for key, size in sizes.items() if size is not None}
    alarms = [{"AlarmName": name} for name in config.rollback_alarms or ()]
    return present(
        RollingUpdatePolicy=policy, WaitIntervalInSeconds=config.wait_interval_s, AutoRollbackConfiguration=alarms
    )


def details(group: Group, environment: Environment) -> dict[str, Any]:
    """A group as DescribeCluster shows it."""
    update, patch = group.scheduled_update, group.auto_patch
    taints = [present(Key=taint.key, Value=taint.value, Effect=taint.effect) for taint in group.taints]
    kubernetes = present(DesiredLabels=dict(group.labels), DesiredTaints=taints, CurrentLabels=dict(group.labels))
    capacity = {"spot": {"Spot": {}}, "on-demand": {"OnDemand": {}}, None: None}[group.capacity]
    return (
        {"ThreadsPerCore": group.threads_per_core, "CurrentCount": 0, "Status": "InService"}
        | present(
            InstanceGroupName=group.name,
            InstanceType=group.instance_type,
            InstanceRequirements=present(DesiredInstanceTypes=list(group.instance_types or ())),
            TrainingPlanArn=group.training_plan_arn,
            OnStartDeepHealthChecks=list(group.deep_health_checks),
            DesiredImageId=group.image_id,
            DesiredImageReleaseVersion=group.image_release_version,
            NetworkInterface=present(InterfaceType=group.network_interface),
            ExecutionRole="arn:aws:iam::111122223333:role/nodes",
            LifeCycleConfig=HOOKS[environment.lifecycle_mode(group)],
            InstanceStorageConfigs=mounted(group, environment),
            OverrideVpcConfig=placed(group),
            ScheduledUpdateConfig=None
            if update is None
            else present(ScheduleExpression=update.schedule_expression, DeploymentConfig=deployment(update.deployment)),
            AutoPatchConfig=None
            if patch is None
            else present(
                PatchingStrategy=patch.strategy,
                DesiredPatchSchedule={"NextPatchDate": "2027-01-31"},
            ),
            KubernetesConfig=kubernetes,
            SlurmConfig=None
            if group.slurm is None
            else present(NodeType=group.slurm.node_type, PartitionNames=[p for p in [group.slurm.partition] if p]),
        )
        | {
            "TargetCount": group.total_count,
            **({"MinCount": group.min_instance_count} if group.min_instance_count is not None else {}),
            **({"CapacityRequirements": capacity} if capacity is not None else {}),
        }
    )


def placed(group: Group) -> dict[str, Any] | None:
    if group.availability_zone is not None:
        return {"Subnets": [zone_subnet(group.availability_zone)], "SecurityGroupIds": [SECURITY_GROUP]}
    if group.override_vpc is None:
        return None
    return {
        "Subnets": list(group.override_vpc.subnet_ids),
        "SecurityGroupIds": list(group.override_vpc.security_group_ids),
    }


def zone_subnet(zone: str) -> str:
    """Of a further zone in a network that was made here."""
    return f"subnet-0{ord(zone[-1]):016x}"


def mounted(group: Group, environment: Environment) -> list[dict[str, Any]]:
    configs = []
    if group.volume_gib is not None:
        volume = present(VolumeSizeInGB=group.volume_gib, VolumeKmsKeyId=group.volume_kms_key)
        configs.append({"EbsVolumeConfig": volume})
    if group.root_volume_kms_key is not None:
        configs.append({"EbsVolumeConfig": {"RootVolume": True, "VolumeKmsKeyId": group.root_volume_kms_key}})
    lustre, home = environment.storage.lustre, environment.storage.home
    if lustre is not None and group.mount_lustre:
        mount = {"DnsName": dns(LUSTRE), "MountName": "abcdefgh", "MountPath": lustre.mount_path}
        configs.append({"FsxLustreConfig": mount})
    if home is not None:
        configs.append({"FsxOpenZfsConfig": {"DnsName": dns(HOME), "MountPath": home.mount_path}})
    return configs


def answers(environment: Environment) -> ObservedCluster:
    """What AWS would answer about an environment that Holdfast deployed."""
    cluster, network = environment.cluster, environment.network
    zone, second = network.availability_zone, network.control_plane_availability_zone
    orchestrator: dict[str, Any] = {"Eks": {"ClusterArn": "arn:aws:eks:us-west-2:111122223333:cluster/x"}}
    if environment.eks is None:
        assert environment.slurm is not None
        accounting = {"Endpoint": "db.example.com", "SecretArn": SECRET}
        orchestrator = {"Slurm": present(AccountingDatabase=environment.slurm.accounting and accounting)}
    owned = {LUSTRE, HOME, BUCKET, SECRET, KEY, "nodes", "x", "sagemaker-x", "vpce-1"}
    own_network = network.existing is None
    further = [
        {"SubnetId": zone_subnet(one), "AvailabilityZone": one, "CidrBlock": f"10.1.{160 + 32 * index}.0/19"}
        for index, one in enumerate(network.additional_availability_zones)
    ]
    subnets = {VPC, SUBNET, CONTROL_PLANE, *(one["SubnetId"] for one in further)}
    stack = frozenset(owned | (subnets if own_network else set()))
    control_plane = {"SubnetId": CONTROL_PLANE, "AvailabilityZone": second, "CidrBlock": "10.1.255.224/28"}
    return ObservedCluster(
        region=environment.region,
        account=environment.account,
        embedded=False,
        tags={"holdfast:environment": environment.name, **cluster.tags},
        cluster=present(
            ClusterName=environment.cluster_name,
            ClusterArn=f"arn:aws:sagemaker:us-west-2:{environment.account}:cluster/abcdefghijkl",
            ClusterStatus="InService",
            InstanceGroups=[details(group, environment) for group in cluster.instance_groups],
            NodeRecovery=cluster.node_recovery,
            NodeProvisioningMode=cluster.node_provisioning_mode,
            AutoScaling=cluster.auto_scaler
            and {"Mode": "Enable", "AutoScalerType": cluster.auto_scaler, "Status": "InService"},
            TieredStorageConfig=cluster.tiered_storage
            and {"Mode": "Enable", "InstanceMemoryAllocationPercentage": cluster.tiered_storage.memory_percentage},
            Orchestrator=orchestrator,
            VpcConfig={"Subnets": [SUBNET], "SecurityGroupIds": [SECURITY_GROUP]},
        ),
        stack=stack,
        subnets=({"SubnetId": SUBNET, "VpcId": VPC, "AvailabilityZone": zone, "CidrBlock": "10.1.0.0/17"},),
        vpc_subnets=(*further, *((control_plane,) if second else ())),
        vpc={"VpcId": VPC, "CidrBlock": network.cidr or "10.1.0.0/16"},
        security_groups=({"GroupId": SECURITY_GROUP, "IpPermissions": SELF, "IpPermissionsEgress": SELF},),
        route_tables=(
            {
                "RouteTableId": TABLE,
                "Associations": [{"SubnetId": SUBNET}],
                "Routes": [{"DestinationCidrBlock": "0.0.0.0/0"}] if network.egress == "nat" else [],
            },
        ),
        endpoints=(S3_ENDPOINT,) if network.existing is not None and network.existing.route_table_id else (),
        flow_logs=network.flow_logs,
        file_systems=file_systems(environment),
        associations=associations(environment),
        customer_keys=frozenset({KEY} if environment.encryption.kms_key == "create" else ()),
        files={"config.json": json.dumps(lifecycle_settings(environment))},
        extensions=extensions(environment),
        **kubernetes(environment),
    )


def extensions(environment: Environment) -> tuple[str, ...]:
    used = environment.slurm is not None and environment.slurm.observability_extension
    return ("sagemaker-observability",) if used else ()


def lifecycle_settings(environment: Environment) -> dict[str, Any]:
    lustre = environment.storage.lustre
    return {
        "cluster_name": environment.cluster_name,
        "events_path": "/fsx/events",
        "users": [user.model_dump() for user in environment.lifecycle.users],
        "preload": [lustre.mount_path + folder for folder in lustre.preload] if lustre is not None else [],
        "scripts": [Path(script).name for script in environment.lifecycle.scripts],
    }


def kubernetes(environment: Environment) -> dict[str, Any]:
    eks = environment.eks
    if eks is None:
        return {}
    governance = eks.task_governance
    classes = [{"Name": each.name, "Weight": each.weight} for each in governance.priority_classes] if governance else []
    return {
        "eks": {
            "name": "x",
            "version": eks.kubernetes_version,
            "resourcesVpcConfig": {
                "subnetIds": [SUBNET, CONTROL_PLANE],
                "endpointPublicAccess": bool(eks.public_access_cidrs),
                "publicAccessCidrs": list(eks.public_access_cidrs),
            },
        },
        "addons": (
            "vpc-cni",
            *(["amazon-sagemaker-hyperpod-training-operator"] if eks.training_operator else []),
            *(["amazon-sagemaker-hyperpod-observability"] if eks.observability_addon else []),
        ),
        "admin_roles": eks.admin_role_arns,
        "scheduler": {"FairShare": "Enabled", "PriorityClasses": classes} if governance else None,
        "quotas": tuple(quota_of(team) for team in governance.teams) if governance else (),
    }


def quota_of(team: Team) -> dict[str, Any]:
    limit = {} if team.borrow_limit_percent is None else {"BorrowLimit": team.borrow_limit_percent}
    resources = [{"InstanceType": each.instance_type, "Count": each.instance_count} for each in team.quota]
    return {
        "ComputeQuotaTarget": {"TeamName": team.name, "FairShareWeight": team.weight},
        "ComputeQuotaConfig": {
            "ComputeQuotaResources": resources,
            "ResourceSharingConfig": {"Strategy": team.sharing, **limit},
            "PreemptTeamTasks": team.preemption,
        },
    }


def file_systems(environment: Environment) -> tuple[dict[str, Any], ...]:
    lustre, home = environment.storage.lustre, environment.storage.home
    key = {"KmsKeyId": KEY} if environment.encryption.kms_key == "create" else {}
    found: list[dict[str, Any]] = []
    if lustre is not None:
        iops = lustre.metadata_iops
        metadata = {"Mode": "AUTOMATIC", "Iops": 6000} if iops is None else {"Mode": "USER_PROVISIONED", "Iops": iops}
        configuration = {
            "DeploymentType": "PERSISTENT_2",
            "PerUnitStorageThroughput": lustre.throughput_mbps_per_tib,
            "DataCompressionType": lustre.compression,
            "WeeklyMaintenanceStartTime": lustre.maintenance_window or "2:09:30",
            "EfaEnabled": lustre.efa,
            "MetadataConfiguration": metadata,
        }
        found.append({"FileSystemId": LUSTRE, "FileSystemType": "LUSTRE", "StorageCapacity": lustre.capacity_gib,
                      "StorageType": "SSD", "LustreConfiguration": configuration, **key})  # fmt: skip
    if home is not None:
        found.append({"FileSystemId": HOME, "FileSystemType": "OPENZFS", "StorageCapacity": home.capacity_gib,
                      "OpenZFSConfiguration": {"ThroughputCapacity": home.throughput_mbps}})  # fmt: skip
    return tuple(found)


def associations(environment: Environment) -> tuple[dict[str, Any], ...]:
    lustre = environment.storage.lustre
    return tuple(
        {
            "FileSystemId": LUSTRE,
            "FileSystemPath": dataset.file_system_path,
            "DataRepositoryPath": f"s3://{BUCKET}/{dataset.s3_prefix}",
            "S3": present(
                AutoImportPolicy=present(Events=list(dataset.auto_import)),
                AutoExportPolicy=present(Events=list(dataset.auto_export)),
            ),
        }
        for dataset in (lustre.datasets if lustre is not None else ())
    )


def read_back(imported: Draft) -> Environment:
    return Environment.model_validate(yaml.safe_load(render(imported, origin="the test")))


@pytest.mark.parametrize("name", ["minimal", "full", "full-slurm", "eks-p5", "slurm-p5"])
def test_every_setting_that_aws_knows_comes_back(name: str) -> None:
    environment = load(ENVIRONMENTS / f"{name}.yaml")
    if environment.eks is None and environment.slurm is None:
        environment = environment.model_copy(update={"slurm": load(ENVIRONMENTS / "slurm-p5.yaml").slurm})

    imported = from_observed(answers(environment))
    again = read_back(imported)

    expected = known_to_aws(environment)
    asked = "cluster.auto_scaler: DECIDE: node pools are not read, see kubectl get nodepools"
    assert any(note.startswith(asked) for note in notes(imported)) == (environment.cluster.auto_scaler is not None)
    if name in ("minimal", "slurm-p5"):  # these answers do not tell the strategy
        expected["slurm"] = None
    assert known_to_aws(again) == expected


@pytest.mark.parametrize(
    ("modes", "shared", "own"),
    [
        (("extension", "extension"), None, (None, None)),
        (("custom", "custom"), "custom", (None, None)),
        (("none", "none"), "none", (None, None)),
        (("none", "extension"), None, ("none", None)),
        (("none", "custom"), None, ("none", "custom")),
    ],
)
def test_the_lifecycle_mode_of_every_group_is_kept(
    modes: tuple[str, str], shared: str | None, own: tuple[str | None, ...]
) -> None:
    document = yaml.safe_load((ENVIRONMENTS / "slurm-p5.yaml").read_text())
    for group, mode in zip(document["cluster"]["instance_groups"], modes, strict=True):
        group["lifecycle_mode"] = mode

    imported = from_observed(answers(Environment.model_validate(document))).document

    assert imported["lifecycle"].get("mode") == shared
    assert tuple(group.get("lifecycle_mode") for group in imported["cluster"]["instance_groups"]) == own


def test_custom_is_no_news_where_nothing_else_is_taken() -> None:
    for name in ("eks-p5", "full-slurm"):
        imported = from_observed(answers(load(ENVIRONMENTS / f"{name}.yaml"))).document
        assert "mode" not in imported.get("lifecycle", {})


def changed(observed: ObservedCluster, **changes: Any) -> ObservedCluster:
    return ObservedCluster(**{**vars(observed), **changes})


@pytest.fixture
def observed() -> ObservedCluster:
    return answers(load(ENVIRONMENTS / "slurm-p5.yaml"))


def notes(imported: Draft) -> list[str]:
    return [str(note) for note in imported.notes]


def test_a_network_of_somebody_else_is_used_and_not_made(observed: ObservedCluster) -> None:
    no_rules = {"GroupId": SECURITY_GROUP, "IpPermissions": SELF, "IpPermissionsEgress": []}

    imported = from_observed(
        changed(observed, stack=frozenset(), security_groups=(no_rules,), endpoints=(S3_ENDPOINT,), tags={})
    )

    assert imported.document["network"] == {
        "availability_zone": "us-west-2a",
        "egress": "nat",
        "existing": {
            "vpc_id": VPC,
            "vpc_cidr": "10.1.0.0/16",
            "subnet_id": SUBNET,
            "subnet_cidr": "10.1.0.0/17",
            "security_group_id": SECURITY_GROUP,
        },
    }
    assert (
        f"network.existing.security_group_id: DECIDE: {SECURITY_GROUP} does not allow all traffic to itself, "
        "which EFA needs" in notes(imported)
    )


def test_another_kind_of_file_system_becomes_the_nearest_and_asks_to_be_looked_at(observed: ObservedCluster) -> None:
    scratch = {
        "FileSystemId": LUSTRE,
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 3600,
        "LustreConfiguration": {
            "DeploymentType": "PERSISTENT_1",
            "PerUnitStorageThroughput": 200,
            "WeeklyMaintenanceStartTime": "2:09:30",
        },
    }

    imported = from_observed(changed(observed, file_systems=(scratch,)))
    lustre = read_back(imported).storage.lustre

    assert lustre is not None
    assert (lustre.capacity_gib, lustre.throughput_mbps_per_tib, lustre.compression) == (4800, 250, "NONE")
    assert lustre.maintenance_window == "2:09:30"
    assert (
        "storage.lustre: DECIDE: was PERSISTENT_1 on SSD; Holdfast makes PERSISTENT_2 on SSD, check size and throughput"
        in notes(imported)
    )


def test_what_aws_did_not_answer_is_said(observed: ObservedCluster) -> None:
    imported = from_observed(changed(observed, unasked=(("storage", "AccessDenied"),)))

    assert "storage: DECIDE: not checked, AWS did not answer: AccessDenied" in notes(imported)


def test_users_of_aws_samples_become_users_and_impossible_ones_are_said(observed: ObservedCluster) -> None:
    files = {"shared_users.txt": "alice,2001,/fsx/alice\nbob,2002,/data/bob\nroot,0,/root\n"}

    imported = from_observed(changed(observed, files=files), create={"scripts"})

    users = [user.model_dump(exclude_defaults=True) for user in read_back(imported).lifecycle.users]
    assert users == [{"name": "alice", "uid": 2001}, {"name": "bob", "uid": 2002, "home": "/data/bob"}]
    assert "lifecycle: DECIDE: user root with id 0 is left out; allowed: 1001 to 59999" in notes(imported)


def test_the_name_of_a_running_cluster_is_taken_unless_its_stack_is_updated(observed: ObservedCluster) -> None:
    taken = (
        "cluster: a cluster of this name is not made while another one has it: "
        "take another name, or delete that one first"
    )
    of_somebody_else = changed(observed, tags={"team": "a"}, stack=frozenset())

    assert taken not in notes(from_observed(observed))
    assert taken in notes(from_observed(of_somebody_else))


def test_scripts_of_your_own_are_named() -> None:
    imported = from_observed(answers(load(ENVIRONMENTS / "full-slurm.yaml")))

    assert "lifecycle.scripts: DECIDE: tune.sh ran after Holdfast's scripts: add its path" in notes(imported)


def test_a_setting_without_a_place_in_the_file_is_never_dropped_silently(observed: ObservedCluster) -> None:
    cluster = dict(observed.cluster)
    cluster["InstanceGroups"] = [{**cluster["InstanceGroups"][0], "FutureConfig": {"Mode": "On"}}]
    cluster["FutureSetting"] = 1

    told = notes(from_observed(changed(observed, cluster=cluster)))

    assert "cluster: DECIDE: FutureSetting is left out, the file has no setting for it: 1" in told
    assert (
        "cluster.instance_groups.controller: DECIDE: FutureConfig is left out, the file has no setting for it: "
        "{'Mode': 'On'}" in told
    )


def of_a_team(name: str, **changes: Any) -> ObservedCluster:
    """A cluster like that of an environment, which somebody made otherwise."""
    known = answers(load(ENVIRONMENTS / f"{name}.yaml"))
    return changed(known, stack=frozenset(), tags={"team": "a"}, files={}, **changes)


def test_what_a_team_has_is_used_and_not_made(observed: ObservedCluster) -> None:
    document = from_observed(of_a_team("slurm-p5")).document

    assert document["cluster"]["execution_role_arn"] == "arn:aws:iam::111122223333:role/nodes"
    assert document["storage"]["lustre"] == {"existing": {"file_system_id": LUSTRE, "mount_name": "abcdefgh"}}
    assert document["lifecycle"] == {"existing": {"source_s3_uri": BUNDLE, "on_init_complete": "on_init_complete.sh"}}
    assert set(document["network"]["existing"]) >= {"vpc_id", "subnet_id", "security_group_id"}
    assert "encryption" not in document


def test_an_eks_cluster_of_a_team_is_used_and_not_made() -> None:
    imported = from_observed(of_a_team("eks-p5"))

    assert imported.document["eks"]["existing"] == {"cluster": "arn:aws:eks:us-west-2:111122223333:cluster/x"}
    assert "kubernetes_version" not in imported.document["eks"]
    assert "control_plane_subnet_ids" not in imported.document["network"]["existing"]
    assert imported.document["observability"] == {"container_insights": False}
    assert any("one HyperPod cluster at a time" in note for note in notes(imported))


@pytest.mark.parametrize(
    ("part", "path", "kept"),
    [
        ("roles", ("cluster", "execution_role_arn"), None),
        ("storage", ("storage", "lustre", "existing"), None),
        ("scripts", ("lifecycle",), None),
        ("network", ("network", "existing"), None),
    ],
)
def test_what_is_asked_for_anew_is_made(part: Any, path: tuple[str, ...], kept: None) -> None:
    value: Any = from_observed(of_a_team("slurm-p5"), create={part}).document
    for key in path:
        value = (value or {}).get(key)

    assert value is kept


def test_groups_say_only_the_role_and_the_scripts_that_others_do_not_have(observed: ObservedCluster) -> None:
    cluster = dict(observed.cluster)
    controller, *workers = cluster["InstanceGroups"]
    other = {"SourceS3Uri": "s3://sagemaker-y/base", "OnCreate": "on_create.sh"}
    own = {**controller, "ExecutionRole": "arn:aws:iam::111122223333:role/head", "LifeCycleConfig": other}
    bare = {**controller, "InstanceGroupName": "login", "LifeCycleConfig": None}
    cluster |= {"InstanceGroups": [own, bare, *workers, {**workers[0], "InstanceGroupName": "more"}]}

    groups = from_observed(of_a_team("slurm-p5", cluster=cluster)).document["cluster"]["instance_groups"]

    assert groups[0]["execution_role_arn"] == "arn:aws:iam::111122223333:role/head"
    assert groups[0]["life_cycle_config"] == {"source_s3_uri": "s3://sagemaker-y/base", "on_create": "on_create.sh"}
    assert groups[1]["lifecycle_mode"] == "none"
    assert not {"execution_role_arn", "life_cycle_config", "lifecycle_mode"} & set(groups[2])


def test_further_subnets_and_groups_of_a_network_are_kept(observed: ObservedCluster) -> None:
    second = {**observed.subnets[0], "SubnetId": "subnet-0123456789abcdef9", "AvailabilityZone": "us-west-2b"}
    group = {**observed.security_groups[0], "GroupId": "sg-0123456789abcdef9"}

    network = from_observed(
        of_a_team(
            "slurm-p5",
            subnets=(*observed.subnets, second),
            security_groups=(*observed.security_groups, group),
        )
    ).document["network"]["existing"]

    assert network["additional_subnet_ids"] == ["subnet-0123456789abcdef9"]
    assert network["additional_security_group_ids"] == ["sg-0123456789abcdef9"]


def test_the_route_table_of_a_team_gets_no_endpoint_by_itself(observed: ObservedCluster) -> None:
    imported = from_observed(of_a_team("slurm-p5", endpoints=()))

    assert "route_table_id" not in imported.document["network"]["existing"]
    assert any(f"no gateway endpoint to S3 is made for {TABLE}" in note for note in notes(imported))


def test_a_link_that_the_stack_did_not_make_stays_and_is_not_made_again() -> None:
    known = answers(load(ENVIRONMENTS / "full.yaml"))
    links = tuple({**each, "AssociationId": f"dra-{number}"} for number, each in enumerate(known.associations))
    made = changed(known, associations=links, stack=known.stack - {LUSTRE} | {"dra-0"})

    lustre = from_observed(made).document["storage"]["lustre"]

    assert "existing" in lustre
    assert [dataset["file_system_path"] for dataset in lustre["datasets"]] == [links[0]["FileSystemPath"]]


def test_a_link_with_a_bucket_of_somebody_else_names_it(observed: ObservedCluster) -> None:
    link = {"FileSystemId": LUSTRE, "FileSystemPath": "/data", "DataRepositoryPath": "s3://theirs/a/"}

    lustre = from_observed(changed(observed, associations=(link,))).document["storage"]["lustre"]

    assert lustre["datasets"] == [{"name": "data", "file_system_path": "/data", "s3_uri": "s3://theirs/a"}]


@pytest.mark.parametrize("config", [{}, {"SourceS3Uri": BUNDLE}, {**HOOKS["custom"], "OnInitComplete": "b.sh"}])  # type: ignore[dict-item]
def test_a_lifecycle_configuration_that_hyperpod_refuses_is_a_question(
    config: dict[str, str], observed: ObservedCluster
) -> None:
    cluster = dict(observed.cluster)
    cluster["InstanceGroups"] = [{**cluster["InstanceGroups"][0], "LifeCycleConfig": config}]

    told = notes(from_observed(of_a_team("slurm-p5", cluster=cluster)))

    assert any("DECIDE" in note and "which HyperPod refuses; say what it runs" in note for note in told)


def test_a_config_of_somebody_elses_scripts_is_not_taken_for_our_own(observed: ObservedCluster) -> None:
    for text in ("no json", "[1]", '{"ENABLE": true}'):
        document = from_observed(of_a_team("slurm-p5", cluster=observed.cluster)).document
        again = from_observed(changed(of_a_team("slurm-p5"), files={"config.json": text})).document
        assert again["lifecycle"] == document["lifecycle"]


def test_the_legacy_file_beside_kept_scripts_is_a_question(observed: ObservedCluster) -> None:
    cluster = {key: value for key, value in observed.cluster.items() if key != "Orchestrator"}
    legacy = {"controller_group": "controller", "worker_groups": [{"instance_group_name": "workers"}]}
    files = {"provisioning_parameters.json": json.dumps(legacy)}

    imported = from_observed(changed(of_a_team("slurm-p5", cluster=cluster), files=files))

    assert imported.document["slurm"] == {"config_strategy": "Merge"}
    assert any(
        note.startswith("lifecycle.existing.source_s3_uri: DECIDE: HyperPod refuses") for note in notes(imported)
    )


def test_a_value_that_no_file_may_say_is_a_question_at_its_setting(observed: ObservedCluster) -> None:
    cluster = dict(observed.cluster)
    cluster["InstanceGroups"] = [{**cluster["InstanceGroups"][0], "InstanceType": "ml.p99.large"}]

    told = notes(from_observed(changed(observed, cluster=cluster)))

    assert any(
        note.startswith('cluster.instance_groups.controller.instance_type: DECIDE: got "ml.p99.large"') for note in told
    )


@pytest.mark.parametrize(
    ("name", "tags"), [("eks-p5", {"team": "a"}), ("slurm-p5", {"team": "a", "SageMaker": "true"})]
)
def test_the_tag_that_every_cluster_on_eks_gets_is_not_one_of_the_file(name: str, tags: dict[str, str]) -> None:
    imported = from_observed(changed(of_a_team(name), tags={"team": "a", "SageMaker": "true"}))

    assert imported.document["cluster"]["tags"] == tags
