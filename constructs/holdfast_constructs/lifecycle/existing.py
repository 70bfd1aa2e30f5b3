"""External lifecycle scripts in S3."""

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from holdfast_constructs.cdk import has_token


class ExistingScripts(Construct):
    """Scripts by their place, never written."""

    on_create: str | None
    on_init_complete: str | None
    source_s3_uri: str

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        source_s3_uri: str,
        on_create: str | None,
        on_init_complete: str | None,
        encryption_key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, construct_id)
        if (on_create is None) == (on_init_complete is None):
            raise ValueError(
                f"lifecycle scripts at {source_s3_uri}: got on_create {on_create!r} and on_init_complete "
                f"{on_init_complete!r}; allowed: exactly one of them; HyperPod refuses both and neither"
            )
        self.on_create, self.on_init_complete, self.source_s3_uri = on_create, on_init_complete, source_s3_uri
        self._key = encryption_key
        self._bucket: s3.IBucket | None = None
        self._prefix = ""
        if not has_token(source_s3_uri):
            name, _, prefix = source_s3_uri.removeprefix("s3://").partition("/")
            self._bucket = s3.Bucket.from_bucket_attributes(
                self, "Bucket", bucket_name=name, encryption_key=encryption_key
            )
            self._prefix = prefix.strip("/")

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow ``grantee`` to read the scripts, unless the place is known at deployment only."""
        if self._bucket is None:
            return iam.Grant.drop(grantee, "the bucket of the lifecycle scripts is not known before deployment")
        return self._bucket.grant_read(grantee, f"{self._prefix}/*" if self._prefix else "*")

    def tell(self, name: str, value: object) -> None:
        """Nothing to do: external scripts stay unchanged."""
