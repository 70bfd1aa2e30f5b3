"""Values that are well-formed each and impossible together are refused."""

from pathlib import Path

import pytest

from holdfast.config import EnvironmentFileError, load

BASE = """\
name: demo
cloud: {cloud}
account: "{account}"
region: us-west-2
network: {{cidr: {cidr}, availability_zone: {zone}}}
cluster:
  instance_groups:
    - {{name: controller, instance_type: ml.m5.xlarge, instance_count: {controllers}, slurm: {{node_type: {head}}}}}
    - {{name: {second}, instance_type: ml.p5.48xlarge, instance_count: {workers}, spare_count: 1, slurm: {slurm}}}
storage:
  lustre: {{capacity_gib: 1200, throughput_mbps_per_tib: 250, datasets: {datasets}}}
lifecycle: {{users: {users}}}
images: {images}
stand_ins: {stand_ins}
"""
DEFAULTS = {
    "cloud": "embedded",
    "account": "123456789012",
    "cidr": "10.1.0.0/16",
    "zone": "us-west-2a",
    "controllers": "1",
    "head": "Controller",
    "second": "workers",
    "workers": "4",
    "slurm": "{node_type: Compute, partition: dev}",
    "datasets": "[]",
    "users": "[]",
    "images": "{training: {source: environment}}",
    "stand_ins": "{gpu: cpu}",
}
ON_AWS = {"cloud": "aws", "images": "{training: {source: ecr, repository: team/image}}", "stand_ins": "{}"}


def problems(folder: Path, **changes: str) -> list[str]:
    path = folder / "demo.yaml"
    path.write_text(BASE.format(**{**DEFAULTS, **changes}))
    try:
        load(path)
    except EnvironmentFileError as error:
        return [str(problem) for problem in error.problems]
    return []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_base_of_these_tests_is_valid_on_both_clouds(folder: Path) -> None:
    assert problems(folder) == []
    assert problems(folder, **ON_AWS) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"second": "controller"},
            ['demo.yaml:9: cluster.instance_groups.1.name: got "controller" again, after line 8; allowed: a name that '
             "no other instance group has; give this instance group another name"],
            id="group-name-twice",
        ),
        pytest.param(
            {"head": "Login"},
            ["demo.yaml:7: cluster.instance_groups: got 0 groups of node_type Controller; allowed: exactly one; "
             "add a group with slurm: {node_type: Controller}"],
            id="no-controller",
        ),
        pytest.param(
            {"slurm": "{node_type: Controller}"},
            ["demo.yaml:7: cluster.instance_groups: got 2 groups of node_type Controller; allowed: exactly one; "
             "keep one of them",
             "demo.yaml:9: cluster.instance_groups.1.instance_count: got 5 with spares; allowed: 1 on the Controller "
             "group; write instance_count: 1, and no spare_count"],
            id="two-controllers",
        ),
        pytest.param(
            {"controllers": "2"},
            ["demo.yaml:8: cluster.instance_groups.0.instance_count: got 2 with spares; allowed: 1 on the Controller "
             "group; write instance_count: 1, and no spare_count"],
            id="two-nodes-of-the-controller",
        ),
        pytest.param(
            {"slurm": "{node_type: Compute}"},
            ["demo.yaml:9: cluster.instance_groups.1.slurm.partition: got nothing; allowed: a partition on every "
             "Compute group; add partition: dev"],
            id="compute-without-partition",
        ),
        pytest.param(
            {"head": "Controller, partition: dev"},
            ['demo.yaml:8: cluster.instance_groups.0.slurm.partition: got "dev"; allowed: no partition on a '
             "Controller group; remove partition"],
            id="controller-with-partition",
        ),
        pytest.param(
            {"zone": "eu-west-1b"},
            ['demo.yaml:5: network.availability_zone: got "eu-west-1b"; allowed: a zone of region us-west-2; '
             "write availability_zone: us-west-2b, or change region"],
            id="zone-of-another-region",
        ),
        pytest.param(
            {"cidr": "10.1.0.0/24"},
            ["demo.yaml:5: network.cidr: got 10.1.0.0/24, half of which has 128 addresses; allowed: a half with "
             "room for the 215 addresses that the instance groups need; write a block of /23"],
            id="network-whose-half-is-too-small",
        ),
        pytest.param(
            {"workers": "6000"},
            ["demo.yaml:5: network.cidr: got 10.1.0.0/16, half of which has 32768 addresses; allowed: a half with "
             "room for the 211287 addresses "
             "that the instance groups need; take fewer nodes: a VPC has at most a /16"],
            id="more-nodes-than-a-vpc-has-room-for",
        ),
        pytest.param(
            {"users": "[{name: a, uid: 2000}, {name: b, uid: 2000}, {name: a, uid: 2001}]"},
            ['demo.yaml:12: lifecycle.users.1.uid: got 2000 again, after line 12; allowed: a uid that no other user '
             "has; give this user another uid",
             'demo.yaml:12: lifecycle.users.2.name: got "a" again, after line 12; allowed: a name that no other user '
             "has; give this user another name"],
            id="users-twice",
        ),
        pytest.param(
            {"datasets": "[{name: a, file_system_path: /a, s3_prefix: x},"
             " {name: b, file_system_path: /a/b, s3_prefix: y}]"},
            ['demo.yaml:11: storage.lustre.datasets.1.file_system_path: got "/a/b"; allowed: what does not overlap '
             "with /a of dataset a; give one of them another file_system_path"],
            id="dataset-inside-a-dataset",
        ),
        pytest.param(
            {"datasets": "[{name: a, file_system_path: /a, s3_prefix: x/y},"
             " {name: b, file_system_path: /b, s3_prefix: x}]"},
            ['demo.yaml:11: storage.lustre.datasets.1.s3_prefix: got "x"; allowed: what does not overlap with x/y of '
             "dataset a; give one of them another s3_prefix"],
            id="prefix-around-a-prefix",
        ),
        pytest.param(
            ON_AWS | {"images": "{training: {source: environment}}"},
            ['demo.yaml:13: images.training.source: got "environment"; allowed: ecr, when cloud is aws; '
             "write {source: ecr, repository: NAME}, or set cloud: embedded"],
            id="environment-as-an-image-on-aws",
        ),
        pytest.param(
            {"images": "{training: {source: ecr}}"},
            ["demo.yaml:13: images.training.repository: got nothing; allowed: the name of an ECR repository; "
             "add repository: NAME"],
            id="ecr-without-repository",
        ),
        pytest.param(
            ON_AWS | {"stand_ins": "{gpu: cpu}"},
            ['demo.yaml:14: stand_ins.gpu: got "cpu"; allowed: nothing, when cloud is aws; remove stand_ins, or set '
             "cloud: embedded"],
            id="stand-in-on-aws",
        ),
        pytest.param(
            {"account": "111122223333"},
            ['demo.yaml:3: account: got "111122223333"; allowed: 123456789012, the account of the embedded AWS; '
             'write account: "123456789012"'],
            id="another-account-on-the-embedded-aws",
        ),
    ],
)  # fmt: skip
def test_rejects_an_impossible_combination(changes: dict[str, str], expected: list[str], folder: Path) -> None:
    assert problems(folder, **changes) == expected


def test_neighbouring_names_do_not_overlap(folder: Path) -> None:
    both = (
        "[{name: a, file_system_path: /data, s3_prefix: data}, {name: b, file_system_path: /data2, s3_prefix: data2}]"
    )

    assert problems(folder, datasets=both) == []


def test_a_network_that_is_just_large_enough_is_accepted(folder: Path) -> None:
    assert problems(folder, cidr="10.1.0.0/23") == []
