"""The validation messages of HyperPod that AWS's guide quotes, word for word; each case breaks one thing."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.localcloud.aws.common import ServiceError
from holdfast.localcloud.aws.sagemaker import RESTRICTED, References, check_lifecycle, check_settings

URI = "s3://sagemaker-lab/scripts"
CUSTOM = {"SourceS3Uri": URI, "OnCreate": "on_create.sh"}
EXTENSION = {"SourceS3Uri": URI, "OnInitComplete": "on_init_complete.sh"}
SLURM, EKS = {"Slurm": {}}, {"Eks": {"ClusterArn": "arn:aws:eks:us-west-2:123456789012:cluster/lab"}}
LUSTRE = {"FsxLustreConfig": {"DnsName": "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com", "MountName": "abcdefgh"}}
AMI = "ami-0123456789abcdef0"
VPC = {"SecurityGroupIds": ["sg-0123456789abcdef0"], "Subnets": ["subnet-0123456789abcdef0"]}

CONTINUOUS = {"NodeProvisioningMode": "Continuous"}

Groups = dict[str, dict[str, Any]]
Change = Callable[[dict[str, Any], Groups], object]


def settings(orchestrator: dict[str, Any] = SLURM, **more: Any) -> dict[str, Any]:
    return {"Orchestrator": copy.deepcopy(orchestrator), "VpcConfig": VPC, **more}


def groups(lifecycle: dict[str, str] | None = EXTENSION, *, slurm: bool = True) -> Groups:
    kinds = {"head": {"NodeType": "Controller"}, "workers": {"NodeType": "Compute", "PartitionNames": ["dev"]}}
    return {
        name: {
            "InstanceGroupName": name,
            "InstanceType": "ml.m5.xlarge",
            "InstanceCount": 1,
            **({"LifeCycleConfig": dict(lifecycle)} if lifecycle is not None else {}),
            **({"SlurmConfig": copy.deepcopy(kind)} if slurm else {}),
        }
        for name, kind in kinds.items()
    }


def refusal(wanted: dict[str, Any], of: Groups) -> str:
    with pytest.raises(ServiceError) as caught:
        check_settings(wanted, of)
    assert caught.value.code == "ValidationException"
    return str(caught.value)


WHOLE: dict[str, Change] = {
    "Cluster must have exactly one InstanceGroup with Controller node type": lambda _, g: g["workers"].update(
        SlurmConfig={"NodeType": "Controller"}
    ),
    "Partitions can only be assigned to Compute node types": lambda _, g: g["head"]["SlurmConfig"].update(
        PartitionNames=["dev"]
    ),
    "FSx configurations are only supported for Custom VPC": lambda s, g: (
        (s.pop("VpcConfig"), g["workers"].update(InstanceStorageConfigs=[LUSTRE]))
    ),
}
"""Messages that the guide quotes as a whole."""

BEGINNINGS: dict[str, Change] = {
    "OnCreate and OnInitComplete in LifeCycleConfig are mutually exclusive": lambda _, g: g["workers"][
        "LifeCycleConfig"
    ].update(OnCreate="on_create.sh"),
    "LifeCycleConfig for instance group is incomplete": lambda _, g: g["workers"]["LifeCycleConfig"].pop("SourceS3Uri"),
    "LifeCycleConfig for instance group is provided but contains no configuration": lambda _, g: g["workers"].update(
        LifeCycleConfig={}
    ),
}
"""Messages of which the guide quotes the beginning."""


@pytest.mark.parametrize("message", WHOLE)
def test_a_message_that_is_quoted_as_a_whole_is_said_word_for_word(message: str) -> None:
    wanted, of = settings(), groups()
    WHOLE[message](wanted, of)

    assert refusal(wanted, of) == message


@pytest.mark.parametrize("message", BEGINNINGS)
def test_a_message_begins_as_the_guide_quotes_it_and_names_the_group(message: str) -> None:
    wanted, of = settings(), groups()
    BEGINNINGS[message](wanted, of)

    said = refusal(wanted, of)

    assert said.startswith(message)
    assert any(name in said.removeprefix(message) for name in of)


def test_no_controller_is_refused_in_the_same_words_as_two() -> None:
    of = groups()
    del of["head"]

    assert refusal(settings(), of) == "Cluster must have exactly one InstanceGroup with Controller node type"


@pytest.mark.parametrize("strategy", ["WhenIdle", "WhenAllIdle", "DrainFirst"])
def test_patches_are_automatic_on_eks_alone(strategy: str) -> None:
    of = groups()
    of["workers"]["AutoPatchConfig"] = {"PatchingStrategy": strategy}

    assert refusal(settings(), of) == "AutoPatchConfig of instance group 'workers' requires Orchestrator.Eks."


@pytest.mark.parametrize("lifecycle", [None, EXTENSION])
@pytest.mark.parametrize("more", [{}, CONTINUOUS])
def test_eks_needs_oncreate_on_every_group(more: dict[str, Any], lifecycle: dict[str, str] | None) -> None:
    wanted = settings(EKS, **more)
    check_settings(wanted, groups(CUSTOM, slurm=False))
    mixed = groups(CUSTOM, slurm=False) | {"workers": groups(lifecycle, slurm=False)["workers"]}

    said = refusal(wanted, mixed)

    assert said.startswith("LifeCycleConfig is required for instance group workers.")


@pytest.mark.parametrize("head", [None, EXTENSION, CUSTOM])
@pytest.mark.parametrize("workers", [None, EXTENSION, CUSTOM])
@pytest.mark.parametrize("more", [{}, CONTINUOUS])
def test_slurm_takes_every_mode_and_every_mixture(
    head: dict[str, str] | None, workers: dict[str, str] | None, more: dict[str, Any]
) -> None:
    check_settings(settings(SLURM, **more), {"head": groups(head)["head"], "workers": groups(workers)["workers"]})


def test_a_place_without_a_script_is_incomplete_too() -> None:
    assert refusal(settings(), groups({"SourceS3Uri": URI})) == (
        "LifeCycleConfig for instance group is incomplete: head has no OnCreate or OnInitComplete."
    )


def test_restricted_groups_have_no_scripts() -> None:
    check_lifecycle(settings(EKS), {"nova": {RESTRICTED: True}})


class Ec2:
    """One AMI of the account's own."""

    def __init__(self, **image: str) -> None:
        self._image = image

    def describe_images(self, **_: Any) -> dict[str, Any]:
        return {"Images": [{"ImageId": AMI, "CreationDate": "2026-11-22T00:00:00.000Z", **self._image}]}


OLD = {"Name": "Deep Learning Base GPU AMI (Ubuntu 22.04) 20250523"}


@pytest.mark.parametrize("lifecycle", [None, EXTENSION])
@pytest.mark.parametrize("image", [OLD, {"CreationDate": "2025-12-31T23:59:59.000Z"}])
def test_an_old_ami_cannot_make_nodes_ready(image: dict[str, str], lifecycle: dict[str, str] | None) -> None:
    references = References(client=lambda _: Ec2(**image), account="123456789012", region="us-west-2")

    with pytest.raises(ServiceError) as caught:
        references.check_images(settings(), {"workers": {**groups(lifecycle)["workers"], "ImageId": AMI}})

    assert str(caught.value).startswith("LifeCycleConfig is optional but requires a compatible AMI")


@pytest.mark.parametrize(
    ("found", "image", "lifecycle"),
    [
        ({"Name": "ours"}, AMI, EXTENSION),
        ({"Name": "ours 20260115"}, AMI, None),
        (OLD, AMI, CUSTOM),
        (OLD, "default", None),
    ],
)
def test_a_new_ami_and_scripts_that_do_all_are_taken(
    found: dict[str, str], image: str, lifecycle: dict[str, str] | None
) -> None:
    references = References(client=lambda _: Ec2(**found), account="123456789012", region="us-west-2")

    references.check_images(settings(), {"workers": {**groups(lifecycle)["workers"], "ImageId": image}})
