"""The lifecycle modes of groups: what CloudFormation is told, and what lies beside the scripts."""

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_secretsmanager as secretsmanager

from holdfast_constructs import (
    AccountingDatabase,
    EksOrchestrator,
    HyperPodCluster,
    HyperPodNetwork,
    InstanceGroup,
    LifecycleBundle,
    LustreFileSystem,
    LustreMount,
    OpenZfsFileSystem,
    OpenZfsMount,
    SlurmOrchestrator,
)
from holdfast_constructs.eks import EksBase
from holdfast_constructs.groups import LifecycleMode


class Lab:
    """A stack with a network, in which clusters are made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))
        self.subnet = ec2.Subnet.from_subnet_attributes(
            self.stack, "Subnet", subnet_id="subnet-0123456789abcdef0", availability_zone="us-west-2a"
        )
        self.nodes = ec2.SecurityGroup.from_security_group_id(self.stack, "Nodes", "sg-0123456789abcdef0")
        vpc = ec2.Vpc.from_vpc_attributes(
            self.stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-west-2a"]
        )
        self.network = HyperPodNetwork.from_attributes(
            self.stack, "Network", vpc=vpc, subnet=self.subnet, security_group=self.nodes
        )

    def bundle(self, *names: str) -> LifecycleBundle:
        for name in names:
            (self.folder / name).write_text("#!/bin/bash\n")
        sources = [self.folder / name for name in names]
        return LifecycleBundle(self.stack, "Lifecycle", name="demo", sources=sources, config={})

    def cluster(self, *, orchestrator: SlurmOrchestrator | EksOrchestrator | None = None, **more: Any) -> None:
        HyperPodCluster(
            self.stack,
            "Cluster",
            cluster_name="demo",
            network=self.network,
            orchestrator=orchestrator or SlurmOrchestrator(),
            **more,
        )

    @property
    def template(self) -> dict[str, Any]:
        return dict(assertions.Template.from_stack(self.stack).to_json())

    @property
    def configurations(self) -> list[dict[str, Any] | None]:
        """The LifeCycleConfig of each group, without its URI."""
        (cluster,) = of_type(self.template, "AWS::SageMaker::Cluster")
        found = [group.get("LifeCycleConfig") for group in cluster["Properties"]["InstanceGroups"]]
        return [each and {key: value for key, value in each.items() if key != "SourceS3Uri"} for each in found]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def of_type(template: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [each for each in template["Resources"].values() if each["Type"] == kind]


def head(mode: LifecycleMode | None = None) -> InstanceGroup:
    return InstanceGroup(
        name="head", instance_type="ml.m5.xlarge", instance_count=1, node_type="Controller", lifecycle_mode=mode
    )


def workers(mode: LifecycleMode | None = None) -> InstanceGroup:
    return InstanceGroup(
        name="workers",
        instance_type="ml.g5.8xlarge",
        instance_count=2,
        node_type="Compute",
        partition="dev",
        lifecycle_mode=mode,
    )


BOTH = ("on_create.sh", "on_init_complete.sh")
CUSTOM, EXTENSION = {"OnCreate": "on_create.sh"}, {"OnInitComplete": "on_init_complete.sh"}


@pytest.mark.parametrize(
    ("mode", "expected"), [(None, EXTENSION), ("extension", EXTENSION), ("custom", CUSTOM), ("none", None)]
)
def test_each_mode_is_told_in_the_words_of_hyperpod(
    mode: LifecycleMode | None, expected: dict[str, str] | None, lab: Lab
) -> None:
    lab.cluster(instance_groups=[head(mode)], lifecycle=lab.bundle(*BOTH))

    assert lab.configurations == [expected]


def test_groups_of_one_cluster_may_differ(lab: Lab) -> None:
    lab.cluster(instance_groups=[head("none"), workers("extension")], lifecycle=lab.bundle(*BOTH))

    assert lab.configurations == [None, EXTENSION]


def test_a_script_comes_with_the_place_that_it_is_in(lab: Lab) -> None:
    bundle = lab.bundle(*BOTH)
    lab.cluster(instance_groups=[head(), workers("custom")], lifecycle=bundle)

    (cluster,) = of_type(lab.template, "AWS::SageMaker::Cluster")
    uris = [json.dumps(group["LifeCycleConfig"]["SourceS3Uri"]) for group in cluster["Properties"]["InstanceGroups"]]
    assert len(set(uris)) == 1
    assert bundle.prefix in uris[0]


def test_continuous_provisioning_and_eks_get_what_they_take(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> None:
    lab.cluster(instance_groups=[head()], lifecycle=lab.bundle(*BOTH), continuous_provisioning=True)
    other = Lab(tmp_path_factory.mktemp("eks"))
    other.cluster(
        orchestrator=EksOrchestrator(control_plane=EksBase(other.stack, "Eks", cluster_name="demo-eks")),
        instance_groups=[InstanceGroup(name="workers", instance_type="ml.g5.8xlarge", instance_count=2)],
        lifecycle=other.bundle("on_create.sh"),
    )

    assert (lab.configurations, other.configurations) == ([CUSTOM], [CUSTOM])


def test_without_a_bundle_hyperpod_makes_nodes_ready_alone(lab: Lab) -> None:
    lab.cluster(instance_groups=[head(), workers()])

    assert lab.configurations == [None, None]
    assert of_type(lab.template, "AWS::S3::Bucket") == []


@pytest.mark.parametrize(
    ("mode", "names", "given"),
    [
        ("extension", ["on_create.sh"], "'extension' and a lifecycle bundle without on_init_complete"),
        ("custom", ["on_init_complete.sh"], "'custom' and a lifecycle bundle without on_create"),
        ("custom", [], "'custom' and no lifecycle bundle"),
    ],
)
def test_a_mode_without_its_script_is_refused(mode: LifecycleMode, names: list[str], given: str, lab: Lab) -> None:
    bundle = lab.bundle(*names) if names else None

    with pytest.raises(ValueError, match=f"instance group 'head': got lifecycle_mode {given}; allowed: a bundle with"):
        lab.cluster(instance_groups=[head(mode)], lifecycle=bundle)


@pytest.mark.parametrize("mode", ["extension", "none"])
def test_a_mode_that_eks_does_not_take_fails_the_synthesis(mode: LifecycleMode, lab: Lab) -> None:
    lab.cluster(
        orchestrator=EksOrchestrator(control_plane=EksBase(lab.stack, "Eks", cluster_name="demo-eks")),
        instance_groups=[
            InstanceGroup(name="workers", instance_type="ml.g5.8xlarge", instance_count=2, lifecycle_mode=mode)
        ],
        lifecycle=lab.bundle(*BOTH),
    )

    with pytest.raises(RuntimeError, match="HF519" if mode == "extension" else "HF501"):
        assert lab.template


def with_file_systems(lab: Lab, groups: list[InstanceGroup], **more: Any) -> list[str]:
    """The JSON files beside the scripts, with what only the deployment knows in angle brackets."""
    files: Any = {"subnet": lab.subnet, "security_group": lab.nodes, "storage_capacity_gib": 1200}
    lustre = LustreFileSystem(lab.stack, "Lustre", per_unit_storage_throughput=125, **files)
    home = OpenZfsFileSystem(lab.stack, "Home", **files)
    lab.cluster(
        instance_groups=groups,
        lifecycle=lab.bundle(*BOTH),
        lustre=LustreMount(file_system=lustre),
        home=OpenZfsMount(file_system=home),
        **more,
    )
    folder = Path(cdk.App.of(lab.stack).synth().directory)  # type: ignore[union-attr]
    (deployment,) = of_type(json.loads((folder / "Demo.template.json").read_text()), "Custom::CDKBucketDeployment")
    found = []
    for path in sorted(folder.glob("asset.*/*.json")):
        text = path.read_text()
        for markers in deployment["Properties"].get("SourceMarkers", []):
            for marker, value in markers.items():
                text = text.replace(marker, json.dumps("".join(resolved(value))))
        found.append(f"{path.name} {text}")
    return found


def resolved(value: Any) -> list[str]:
    parts = value["Fn::Join"][1] if "Fn::Join" in value else [value]
    return [part if isinstance(part, str) else f"<{'.'.join(part['Fn::GetAtt'])}>" for part in parts if part != '"']


def beside(found: list[str], name: str) -> Any:
    texts = [text.partition(" ")[2] for text in found if text.startswith(f"{name} ")]
    return json.loads(texts[0]) if texts else None


def test_scripts_that_mount_themselves_find_what_and_where(lab: Lab) -> None:
    found = with_file_systems(lab, [head("extension"), workers("custom")])

    mounts = beside(found, "mounts.json")
    assert [(each["instance_group"], each["type"], each["mount_path"]) for each in mounts] == [
        ("workers", "lustre", "/fsx"),
        ("workers", "openzfs", "/home"),
    ]
    assert "LustreMountName" in mounts[0]["mount_name"]
    assert all("DNSName" in each["dns_name"] for each in mounts)


def test_nothing_lies_beside_scripts_that_have_nothing_to_mount(lab: Lab) -> None:
    found = with_file_systems(lab, [head("extension"), workers("none")])

    assert (beside(found, "mounts.json"), beside(found, "accounting.json")) == (None, None)


def test_a_controller_that_starts_slurmdbd_itself_finds_the_database(lab: Lab) -> None:
    secret = secretsmanager.Secret.from_secret_complete_arn(
        lab.stack, "Secret", "arn:aws:secretsmanager:us-west-2:111122223333:secret:slurm-AbCdEf"
    )
    database = AccountingDatabase(endpoint="db.example.com", secret=secret, port=3307, name="jobs")

    found = with_file_systems(
        lab,
        [head(), workers()],
        orchestrator=SlurmOrchestrator(accounting_database=database),
        continuous_provisioning=True,
    )

    assert beside(found, "accounting.json") == {
        "endpoint": "db.example.com",
        "port": 3307,
        "secret_arn": secret.secret_arn,
        "database": "jobs",
    }
    assert {each["instance_group"] for each in beside(found, "mounts.json")} == {"head", "workers"}
