"""8xx: machine images, container images, and how a cluster is watched."""

from collections.abc import Iterator

from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import Deployment, EnvironmentFile, Image, InstanceGroup, LogGroup

WITH_DIGEST = {"agent_image_source": "agent_image_settings", "operator_image_source": "operator_image_settings"}
SOURCES = {"image_source": "image_settings", **WITH_DIGEST}
"""Settings of each image's source in a file, and its other settings."""


@rule(
    "HF803",
    title="A custom AMI has no HyperPod release version",
    each=InstanceGroup,
    source="SageMaker API reference, UpdateClusterSoftware",
)
def image_or_release(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """ImageReleaseVersion chooses among HyperPod's AMIs, ImageId takes another instead."""
    if group.image_release_version is not None and (group.image_id or "default") != "default":
        yield refused(
            group.at("image_release_version"),
            f"a release beside {group.image_id}",
            allowed="one of the two",
            fix="remove one of them",
        )


@rule("HF804", title="Container images can be used where the environment runs", each=EnvironmentFile, source="Holdfast")
def image_source(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """The source environment stands for the Python environment of this machine, which only the embedded AWS runs on."""
    for source in SOURCES:
        if getattr(file, source) == "environment" and file.cloud == "aws":
            yield refused(
                file.at(source),
                show("environment"),
                allowed="ecr or build, when cloud is aws",
                fix="write {source: ecr, repository: NAME}, or set cloud: embedded",
            )


@rule("HF805", title="Images from a registry name their repository", each=EnvironmentFile, source="Holdfast")
def image_repository(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """
    With source ecr the repository is required; with other sources there is none, nor a digest. The images of health
    agent and operator also need their digest: no job chooses a tag for them.
    """
    for source, settings in SOURCES.items():
        given, expected = getattr(file, source), getattr(file, settings)
        if given == "ecr" and "repository" not in expected:
            yield refused(
                file.at(settings), "nothing", allowed="the name of an ECR repository", fix="add repository: NAME"
            )
        elif given == "ecr" and source in WITH_DIGEST and "digest" not in expected:
            yield refused(
                file.at(settings), "no digest", allowed="the digest of the image", fix="add digest: sha256:..."
            )
        if given not in ("ecr", None) and expected:
            yield refused(
                file.at(settings),
                f"{' and '.join(expected)} with source {given}",
                allowed="these settings with source ecr",
                fix="remove them, or write source: ecr",
            )


@rule(
    "HF806",
    severity="warning",
    title="Images are referred to by digest",
    each=Image,
    source="ECR user guide, 'Image tag mutability'",
)
def image_digest(image: Image, deployment: Deployment) -> Iterator[Broken]:
    """
    A tag can be moved, so nodes that are made tomorrow can run another image than those of today. In an environment
    file a repository without a digest leaves the tag to each job.
    """
    if deployment.file is None and image.digest is None:
        yield Broken(
            path=image.path,
            message=f"the tag {show(image.tag or 'latest')} can be moved to another image",
            fix="refer to the image by its digest",
        )


@rule("HF807", title="Grafana has a Prometheus workspace to show", each=EnvironmentFile, source="Holdfast")
def grafana(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """The workspace shows what the Managed Prometheus workspace has collected."""
    if file.grafana and not file.prometheus:
        yield refused(
            file.at("grafana"),
            "grafana without prometheus",
            allowed="grafana with prometheus",
            fix="set observability.prometheus: true",
        )


@rule(
    "HF808",
    title="The observability add-on has a Prometheus workspace to write to",
    each=EnvironmentFile,
    source="SageMaker developer guide, 'Observability add-on': ampWorkspace",
)
def observability_addon(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """Its collector writes to a Managed Prometheus workspace."""
    if file.observability_addon and not file.prometheus:
        yield refused(
            file.at("observability_addon"),
            "the add-on without prometheus",
            allowed="the add-on with prometheus",
            fix="set observability.prometheus: true",
        )


@rule(
    "HF809",
    severity="warning",
    title="Log groups have a retention time",
    each=LogGroup,
    source="CloudWatch Logs user guide, 'Change log data retention'",
)
def retention(group: LogGroup, _: Deployment) -> Iterator[Broken]:
    """A log group without retention keeps everything, and costs more every month."""
    if group.retention_days is None:
        yield Broken(
            path=group.at("retention_days"), message="logs are kept forever", fix="set a retention, such as 365 days"
        )


@rule("HF810", severity="warning", title="Addresses for alarms have alarms", each=EnvironmentFile, source="Holdfast")
def addresses_and_alarms(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """With `alarms: false` addresses get HyperPod's events only."""
    if file.alarm_emails and not file.alarms:
        yield Broken(
            path=file.at("alarm_emails"),
            message="addresses without alarms: no alarms are created",
            fix="set observability.alarms: true",
        )
