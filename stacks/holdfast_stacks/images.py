"""The images of an environment: those that are there, or are built; by references that stay what they are."""

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk.region_info import RegionInfo
from constructs import Construct

from holdfast.config import Environment, ImageSource
from holdfast_constructs import ContainerImage
from holdfast_stacks.required import required
from holdfast_stacks.sources import SOURCES


class TrainingImage:
    uri: str
    """Without tokens, so that it can be written into the lifecycle bundle; empty when jobs choose for themselves."""

    def __init__(self, scope: Construct, environment: Environment) -> None:
        self.uri = ""
        self._repository: ecr.IRepository | None = None
        names = environment.images.repositories if environment.images is not None else ()
        self._others = [_repository(scope, index, name) for index, name in enumerate(names)]
        settings = environment.images.training if environment.images is not None else None
        if settings is None or settings.source == "environment":
            return
        if settings.source == "build":
            image = ContainerImage.from_asset(
                scope, "TrainingImage", directory=SOURCES / "containers", file="training/Dockerfile"
            )
            self._repository = image.repository
            self._name(scope, image)
        elif settings.repository is not None:
            self._repository = ecr.Repository.from_repository_name(scope, "TrainingImage", settings.repository)
            if settings.digest is not None:
                self._name(scope, ContainerImage.from_repository(self._repository, digest=settings.digest))

    def grant_pull(self, role: iam.IRole) -> None:
        for repository in (self._repository, *self._others):
            if repository is not None:
                repository.grant_pull(role)

    def _name(self, scope: Construct, image: ContainerImage) -> None:
        CfnOutput(scope, "TrainingImageUri", value=image.uri)
        stack = Stack.of(scope)
        suffix = RegionInfo.get(stack.region).domain_suffix or "amazonaws.com"
        resolved = stack.resolve(image.uri)
        text = resolved["Fn::Sub"] if isinstance(resolved, dict) and "Fn::Sub" in resolved else _joined(resolved)
        self.uri = text.replace("${AWS::URLSuffix}", suffix)


class AddonImage:
    """Image of pods that are no jobs."""

    uri: str
    """Empty without a named image; then no pod runs it."""

    def __init__(
        self, scope: Construct, construct_id: str, settings: ImageSource | None, *, setting: str, folder: str
    ) -> None:
        """
        Define an image.

        Args:
            settings: None: no image.
            setting: Its name in the environment file.
            folder: Of its Dockerfile below ``containers/``; the local cloud has a stand-in under this name.
        """
        self.uri = ""
        self._image: ContainerImage | None = None
        if settings is None:
            return
        if settings.source == "environment":
            self.uri = f"holdfast.local/{folder}:latest"
            return
        self._image = _addon_image(scope, construct_id, settings, setting=setting, folder=folder)
        self.uri = self._image.uri

    def grant_pull(self, role: iam.IRole) -> None:
        if self._image is not None:
            self._image.grant_pull(role)


def health_agent_image(scope: Construct, environment: Environment) -> AddonImage:
    is_pod = environment.images is not None and environment.health.enabled and environment.eks is not None
    settings = environment.images.health_agent if environment.images is not None and is_pod else None
    return AddonImage(scope, "HealthAgentImage", settings, setting="images.health_agent", folder="health-agent")


def operator_image(scope: Construct, environment: Environment) -> AddonImage:
    has_settings = environment.images is not None and environment.eks is not None
    settings = environment.images.job_operator if environment.images is not None and has_settings else None
    return AddonImage(scope, "JobOperatorImage", settings, setting="images.job_operator", folder="operator")


def _addon_image(
    scope: Construct, construct_id: str, settings: ImageSource, *, setting: str, folder: str
) -> ContainerImage:
    if settings.source == "build":
        directory = SOURCES / "containers"
        return ContainerImage.from_asset(scope, construct_id, directory=directory, file=f"{folder}/Dockerfile")
    name = required(settings.repository, setting=f"{setting}.repository")
    repository = ecr.Repository.from_repository_name(scope, construct_id, name)
    return ContainerImage.from_repository(repository, digest=required(settings.digest, setting=f"{setting}.digest"))


def _repository(scope: Construct, index: int, name: str) -> ecr.IRepository:
    """One that is there, in this account or, by its ARN, in another one, whose policy has to let this one pull."""
    construct_id = f"Repository{index}"
    if not name.startswith("arn:"):
        return ecr.Repository.from_repository_name(scope, construct_id, name)
    plain_name = name.partition(":repository/")[2]
    return ecr.Repository.from_repository_attributes(
        scope, construct_id, repository_arn=name, repository_name=plain_name
    )


def _joined(value: object) -> str:
    """The text of a Join whose only token is the DNS suffix of the partition."""
    if isinstance(value, dict) and value.get("Ref") == "AWS::URLSuffix":
        return "${AWS::URLSuffix}"
    if isinstance(value, dict) and "Fn::Join" in value:
        glue, parts = value["Fn::Join"]
        return str(glue).join(_joined(part) for part in parts)
    return str(value)
