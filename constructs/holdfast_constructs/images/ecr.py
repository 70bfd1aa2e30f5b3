"""Container images: a repository, and immutable references. Contents are defined in containers/."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Duration, IgnoreMode, RemovalPolicy
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecr_assets as ecr_assets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

UNTAGGED_DAYS = 14
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class ImageRepository(Construct):
    """
    Repository with immutable tags and scans.

    Tagged images never expire: a replacement node years later pulls the image of its job.
    """

    repository: ecr.IRepository

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        repository_name: str | None = None,
        encryption_key: kms.IKey | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """
        Define a repository.

        Args:
            encryption_key: Default: ECR's own encryption, AES-256.
            removal_policy: Default: RETAIN_ON_UPDATE_OR_DELETE. DESTROY deletes the repository with its images.
        """
        super().__init__(scope, construct_id)
        self.repository = ecr.Repository(
            self,
            "Resource",
            repository_name=repository_name,
            image_tag_mutability=ecr.TagMutability.IMMUTABLE,
            image_scan_on_push=True,
            encryption=None if encryption_key is None else ecr.RepositoryEncryption.KMS,
            encryption_key=encryption_key,
            lifecycle_rules=[
                ecr.LifecycleRule(
                    description="what a push left behind without a tag",
                    tag_status=ecr.TagStatus.UNTAGGED,
                    max_image_age=Duration.days(UNTAGGED_DAYS),
                )
            ],
            removal_policy=removal_policy,
            empty_on_delete=removal_policy is RemovalPolicy.DESTROY,
        )

    def grant_pull(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow ``grantee`` to pull any image of this repository."""
        return self.repository.grant_pull(grantee)


@dataclass(frozen=True, kw_only=True)
class ContainerImage:
    """Image with an immutable reference; create it with a ``from_`` method."""

    uri: str
    """What a job, a Helm value or a lifecycle setting names."""
    repository: ecr.IRepository

    @staticmethod
    def from_asset(
        scope: Construct,
        construct_id: str,
        *,
        directory: Path,
        file: str = "Dockerfile",
        build_args: Mapping[str, str] | None = None,
        target: str | None = None,
    ) -> "ContainerImage":
        """
        Image that ``cdk deploy`` builds for linux/amd64 and pushes to the repository of the CDK's bootstrap.

        The tag is a hash of context, Dockerfile, arguments and target; that repository refuses to move a tag.

        Args:
            directory: Build context, as limited by ``<file>.dockerignore``, which the hash covers.
            file: Path in ``directory``. Default: "Dockerfile".
            build_args: Visible in the template: never secrets.
            target: Default: the last stage.

        Raises:
            ValueError: the Dockerfile is missing, or its ``.dockerignore`` is not an allow list.
        """
        asset = ecr_assets.DockerImageAsset(
            scope,
            construct_id,
            directory=str(directory),
            file=file,
            build_args=None if build_args is None else dict(build_args),
            target=target,
            platform=ecr_assets.Platform.LINUX_AMD64,
            # Docker always reads its Dockerfile; the CDK leaves it out of context and hash unless told.
            exclude=[*_allow_list(directory, file), f"!{file}"],
            ignore_mode=IgnoreMode.DOCKER,
            display_name=file,
        )
        return ContainerImage(uri=asset.image_uri, repository=asset.repository)

    @staticmethod
    def from_repository(repository: ecr.IRepository, *, digest: str) -> "ContainerImage":
        """
        Image that was pushed before, such as by CI into an ImageRepository.

        Args:
            digest: ``sha256:`` and 64 hexadecimal digits, as ``aws ecr describe-images`` shows it; else ValueError.
        """
        if not DIGEST.fullmatch(digest):
            raise ValueError(
                f"container image: got digest '{digest}'; allowed: sha256: and 64 hexadecimal digits, "
                "as aws ecr describe-images shows it"
            )
        return ContainerImage(uri=repository.repository_uri_for_digest(digest), repository=repository)

    def grant_pull(self, grantee: iam.IGrantable) -> iam.Grant:
        return self.repository.grant_pull(grantee)


def _allow_list(directory: Path, file: str) -> list[str]:
    """Rules of ``<file>.dockerignore``, for Docker and the CDK."""
    if not (directory / file).is_file():
        raise ValueError(f"container image: got the Dockerfile {directory / file}; allowed: a file that exists")
    path = directory / f"{file}.dockerignore"
    lines = path.read_text().splitlines() if path.is_file() else []
    rules = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if rules[:1] != ["*"]:
        given = f"a first rule '{rules[0]}' in {path}" if rules else f"no rules in {path}"
        raise ValueError(
            f"container image: got {given}; allowed: an allow list, first '*', then '!' and what the image needs"
        )
    return rules
