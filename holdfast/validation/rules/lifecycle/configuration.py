"""5xx: the lifecycle configuration of groups: which of HyperPod's three modes they have, and whether they may."""

import re
from collections.abc import Iterator

from holdfast.catalog import bounds
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import Deployment, EnvironmentFile, InstanceGroup, Lifecycle

API = "SageMaker API reference, ClusterLifeCycleConfig"
GUIDE = "SageMaker developer guide, 'Getting started with SageMaker HyperPod using the AWS CLI'"
ERRORS = f"{GUIDE}, 'Common validation errors'"
LONGEST_URI, SCRIPT_NAME = bounds("script_uri_length").most, bounds("script_name_length")
S3_URI = re.compile(r"(https|s3)://([^/]+)/?(.*)")


@rule(
    "HF501",
    title="Groups have a lifecycle configuration where HyperPod requires one",
    each=InstanceGroup,
    source=f"{GUIDE}, note below the options; 'Common validation errors'",
)
def lifecycle_is_there(group: InstanceGroup, deployment: Deployment) -> Iterator[Broken]:
    """
    On EKS, even for a group of no nodes. Under Slurm a group that has none is made ready by HyperPod from its AMI
    alone. The service says "LifeCycleConfig is required for instance group...".
    """
    if deployment.cluster.eks is not None and group.lifecycle is None:
        yield refused(
            group.at("lifecycle"),
            "no lifecycle configuration on EKS",
            allowed="one with OnCreate and SourceS3Uri on every group",
            fix=_in_words(
                deployment, file="write custom", template="add LifeCycleConfig with OnCreate and SourceS3Uri"
            ),
        )


@rule("HF503", title="A lifecycle configuration has all that it needs", each=Lifecycle, source=f"{API}; {GUIDE}")
def complete_lifecycle(lifecycle: Lifecycle, _: Deployment) -> Iterator[Broken]:
    """
    A URI and the name of a script go together. URIs have at most 1024 characters, names 128. The service says
    "LifeCycleConfig for instance group is incomplete...".
    """
    uri = lifecycle.source_s3_uri
    if uri is not None and (len(uri) > LONGEST_URI or not S3_URI.fullmatch(uri)):
        yield refused(lifecycle.at("source_s3_uri"), show(uri), allowed="s3://bucket/prefix", fix="write it like that")
    for attribute in ("on_create", "on_init_complete"):
        name = getattr(lifecycle, attribute)
        if name is not None and not SCRIPT_NAME.has(len(name)):
            yield refused(
                lifecycle.at(attribute), f"{len(name)} characters", allowed=str(SCRIPT_NAME), fix="shorten the name"
            )
    scripts = lifecycle.on_create is not None or lifecycle.on_init_complete is not None
    if (uri is not None) != scripts:
        yield refused(
            lifecycle.at("on_create" if uri else "source_s3_uri"),
            "a URI without a script" if uri else "a script without a URI",
            allowed="both a URI and a script, or neither",
            fix="name the script in OnCreate or OnInitComplete" if uri else "add the URI",
        )


@rule(
    "HF519",
    title="EKS supports OnCreate alone",
    each=InstanceGroup,
    source=f"{GUIDE}: EKS requires LifeCycleConfig with OnCreate and SourceS3Uri on every instance group",
)
def custom_alone(group: InstanceGroup, deployment: Deployment) -> Iterator[Broken]:
    """
    Only under Slurm HyperPod makes a node ready by itself and runs scripts afterwards. The service says
    "LifeCycleConfig is required for instance group...".
    """
    lifecycle = group.lifecycle
    if deployment.cluster.eks is None or lifecycle is None:
        return
    if lifecycle.on_init_complete is not None and lifecycle.on_create is None:
        yield refused(
            group.at("lifecycle"),
            f"{_in_words(deployment, file='extension (OnInitComplete)', template='OnInitComplete')} on EKS",
            allowed=_in_words(deployment, file="custom (OnCreate)", template="OnCreate"),
            fix=_in_words(deployment, file="write custom", template="name the script that does all in OnCreate"),
        )


@rule("HF520", title="A group has one lifecycle script, OnCreate or OnInitComplete", each=Lifecycle, source=ERRORS)
def one_hook(lifecycle: Lifecycle, _: Deployment) -> Iterator[Broken]:
    """
    With OnCreate HyperPod leaves the whole node to the script, with OnInitComplete it makes the node ready first. The
    service says "OnCreate and OnInitComplete in LifeCycleConfig are mutually exclusive...".
    """
    if lifecycle.on_create is not None and lifecycle.on_init_complete is not None:
        yield refused(
            lifecycle.at("on_init_complete"),
            "OnCreate and OnInitComplete",
            allowed="one of them",
            fix="keep OnInitComplete to add to what HyperPod does, OnCreate to do all of it",
        )


@rule(
    "HF521",
    title="A lifecycle configuration is not empty",
    each=Lifecycle,
    source=ERRORS,
)
def lifecycle_is_set(lifecycle: Lifecycle, _: Deployment) -> Iterator[Broken]:
    """
    An empty one is not the same as none. The service says "LifeCycleConfig for instance group is provided but contains
    no configuration...".
    """
    if lifecycle.is_empty:
        yield refused(
            lifecycle.path,
            "a LifeCycleConfig with nothing in it",
            allowed="SourceS3Uri with OnCreate or OnInitComplete, or no LifeCycleConfig",
            fix="take it away to have HyperPod make nodes ready, or name a script",
        )


@rule(
    "HF522",
    severity="warning",
    title="A custom AMI without OnCreate can make nodes ready by itself",
    each=InstanceGroup,
    source=ERRORS,
)
def compatible_image(group: InstanceGroup, deployment: Deployment) -> Iterator[Broken]:
    """
    Where no OnCreate is given the AMI makes the node ready. One that is built on an older image of HyperPod does not
    know how. The service says "LifeCycleConfig is optional but requires a compatible AMI...". Which release was the
    first is not documented; Slurm's configuration through the API needs one of January 2026 or later.
    """
    if deployment.cluster.slurm is None or not (group.image_id or "").startswith("ami-"):
        return
    if group.lifecycle is None or group.lifecycle.on_create is None:
        yield Broken(
            path=group.at("image_id"),
            message=f"{group.image_id} has to make its nodes ready by itself, which images built before 2026 cannot",
            fix="build it on HyperPod's newest image, or have OnCreate do all of it",
        )


@rule(
    "HF523",
    severity="warning",
    title="Users and scripts are set for groups that run them",
    each=EnvironmentFile,
    source="Holdfast",
)
def scripts_everywhere(file: EnvironmentFile, deployment: Deployment) -> Iterator[Broken]:
    """
    Accounts are made by lifecycle scripts, and yours run after them. In a group of mode none no script runs: jobs of
    such an account fail on its nodes.
    """
    expected = ["users"] * bool(file.users) + ["scripts"] * bool(file.scripts)
    if not expected:
        return
    for group in deployment.cluster.instance_groups:
        if group.lifecycle is None and deployment.cluster.eks is None:
            yield Broken(
                path=group.at("lifecycle"),
                message=f"no script runs on the nodes of this group, so lifecycle.{expected[0]} has no effect on them",
                fix="write extension, or take them out",
            )


def _in_words(deployment: Deployment, *, file: str, template: str) -> str:
    return template if deployment.file is None else file
