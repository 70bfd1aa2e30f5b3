"""Lifecycle scripts of a cluster, in S3."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from aws_cdk import Names, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as s3_deployment
from constructs import Construct

from holdfast_constructs.cdk import claim, has_token
from holdfast_constructs.lifecycle.files import JOB_ENVIRONMENT, collect, content_hash, entry
from holdfast_constructs.lifecycle.scripts import ILifecycleScripts


class LifecycleBundle(Construct):
    """
    Scripts of new nodes, under a prefix derived from their content.

    A changed script changes the prefix, so CloudFormation updates the instance groups, and running groups keep theirs.
    Old prefixes stay until the stack is deleted, with the bucket.
    """

    bucket: s3.IBucket
    prefix: str
    on_create: str | None
    """What nodes of groups in mode custom run; None when the bundle has nothing for them."""
    on_init_complete: str | None
    """What nodes of groups in mode extension run; None when the bundle has nothing for them."""
    source_s3_uri: str
    """Begins with ``s3://sagemaker-``, which the managed policy of HyperPod's role covers, unless a bucket is given."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str | None = None,
        sources: Sequence[Path],
        scripts: Sequence[Path] = (),
        checks: Sequence[Path] = (),
        config: Mapping[str, object],
        job_environment: Mapping[str, str] | None = None,
        on_create: str | None = None,
        on_init_complete: str | None = None,
        encryption_key: kms.IKey | None = None,
        bucket: s3.IBucket | None = None,
        prefix: str = "lifecycle",
    ) -> None:
        """
        Define a bundle.

        Args:
            name: Part of the bucket's name: at most 24 lower-case letters, digits and hyphens, unique in the account
                and region. Default: generated.
            sources: Files and folders, each under its own name.
            scripts: The owner's files, in the folder ``scripts``.
            checks: The owner's executables for the health agent, in the folder ``checks``.
            config: Content of ``config.json``: plain values, part of the hash.
            job_environment: Variables for jobs, such as ``MlflowApp.environment``; may hold tokens, not part of the
                hash; changes reach new nodes only.
            on_create: File that replaces HyperPod's configuration of a node and starts Slurm. Default: "on_create.sh"
                if in ``sources``.
            on_init_complete: File that runs after HyperPod's configuration, with Slurm started. Default:
                "on_init_complete.sh" if in ``sources``.
            encryption_key: Default: a key of S3.
            bucket: HyperPod's managed policy covers names with ``sagemaker-``; for others read access is granted.
                Default: a new one.
            prefix: Without slashes at its ends. Default: "lifecycle".
        """
        super().__init__(scope, construct_id)
        for setting, value in config.items():
            if has_token(value):
                raise ValueError(
                    f"lifecycle bundle: got config '{setting}' with a value that is known only at deployment; allowed: "
                    "plain values, which the bundle's hash covers; give the stack its account and region"
                )
        variables = dict(job_environment or {})
        for variable in variables:
            if not (variable.isidentifier() and variable.isascii()):
                raise ValueError(
                    f"lifecycle bundle: got job_environment variable '{variable}'; allowed: a name of letters, digits "
                    "and underscores that does not begin with a digit"
                )
        files = collect(sources=sources, scripts=scripts, checks=checks, config=config)
        self.on_create = entry(files, "on_create", on_create)
        self.on_init_complete = entry(files, "on_init_complete", on_init_complete)
        if self.on_create is None and self.on_init_complete is None:
            raise ValueError(
                "lifecycle bundle: got neither on_create nor on_init_complete; allowed: a file of the bundle "
                f"({', '.join(sorted(file for file in files if '/' not in file))})"
            )
        digest = content_hash(files)
        self._taken = {*files, *([JOB_ENVIRONMENT] if variables else [])}
        self.prefix = f"{prefix}/{digest}"
        self._prefix = prefix
        self.bucket = self._bucket(name, encryption_key) if bucket is None else bucket
        self.source_s3_uri = f"s3://{self.bucket.bucket_name}/{self.prefix}"
        self._deployment = self._deploy(files, digest, variables)

    @staticmethod
    def from_source_s3_uri(
        scope: Construct,
        construct_id: str,
        *,
        source_s3_uri: str,
        on_create: str | None = None,
        on_init_complete: str | None = None,
        encryption_key: kms.IKey | None = None,
    ) -> ILifecycleScripts:
        """
        Refer to external scripts, which stay unchanged.

        Args:
            source_s3_uri: ``s3://``, bucket and prefix.
            on_create, on_init_complete: As of a bundle; one is required.
            encryption_key: Of the bucket; nodes get the right to use it. Default: a key of S3.
        """
        from holdfast_constructs.lifecycle.existing import ExistingScripts

        return ExistingScripts(
            scope,
            construct_id,
            source_s3_uri=source_s3_uri,
            on_create=on_create,
            on_init_complete=on_init_complete,
            encryption_key=encryption_key,
        )

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow ``grantee`` to read this bundle and earlier ones."""
        return self.bucket.grant_read(grantee, f"{self._prefix}/*")

    def tell(self, name: str, value: object) -> None:
        """Put a JSON file of the cluster's data beside the scripts."""
        self.add_data(name, value)

    def add_data(self, name: str, value: object) -> None:
        """Put a JSON file beside the scripts, such as ``mounts.json``; tokens are allowed, and not part of the hash."""
        if name in self._taken:
            raise ValueError(
                f"lifecycle bundle: got the file {name} twice; allowed: a name of its own; give each cluster a bundle"
            )
        self._taken.add(name)
        self._deployment.add_source(s3_deployment.Source.json_data(name, value))

    def _bucket(self, name: str | None, encryption_key: kms.IKey | None) -> s3.Bucket:
        own = name or Names.unique_resource_name(self, max_length=24, separator="-").lower()
        stack = Stack.of(self)
        bucket_name = f"sagemaker-{own}-{stack.account}-{stack.region}"
        claim(self, "lifecycle bundle", bucket_name, given=f"name '{own}'")
        return s3.Bucket(
            self,
            "Resource",
            bucket_name=bucket_name,
            encryption=s3.BucketEncryption.S3_MANAGED if encryption_key is None else s3.BucketEncryption.KMS,
            encryption_key=encryption_key,
            bucket_key_enabled=None if encryption_key is None else True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.DESTROY,
            auto_delete_objects=True,
        )

    def _deploy(
        self, files: Mapping[str, bytes], digest: str, variables: Mapping[str, str]
    ) -> s3_deployment.BucketDeployment:
        with tempfile.TemporaryDirectory(prefix="holdfast-lifecycle-") as folder:
            for name, content in files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            # The asset is copied into the cloud assembly here and now, so the folder need not stay.
            return s3_deployment.BucketDeployment(
                self,
                "Deployment",
                sources=[
                    s3_deployment.Source.asset(folder, asset_hash=digest),
                    *([s3_deployment.Source.json_data(JOB_ENVIRONMENT, variables)] if variables else []),
                ],
                destination_bucket=self.bucket,
                destination_key_prefix=self.prefix,
                prune=False,
                retain_on_delete=True,
            )
