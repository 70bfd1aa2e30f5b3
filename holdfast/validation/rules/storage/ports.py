"""6xx: what file systems let in, and names of buckets."""

import re
from collections.abc import Iterator

from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import App, BucketName, Deployment, text_of
from holdfast.validation.rules.storage.names import FILE_SYSTEM

_PORTS = {"LUSTRE": (988, *range(1018, 1024)), "OPENZFS": (111, 2049, 20001, 20002, 20003)}
_ALL_PORTS = {
    "LUSTRE": "TCP 988 and 1018-1023 from the nodes and the file system itself",
    "OPENZFS": "TCP and UDP 111, 2049 and 20001-20003 from the nodes",
}
BEGINNINGS = ("xn--", "sthree-", "amzn-s3-demo-")
ENDS = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")


@rule(
    "HF655",
    title="Security groups of file systems let their protocol in",
    each=App,
    source="FSx for Lustre user guide, 'File system access control with Amazon VPC'; RDS user guide",
)
def own_groups(app: App, _: Deployment) -> Iterator[Broken]:
    """
    FSx refuses a Lustre file system whose security groups do not let Lustre, port 988, in from themselves or from the
    nodes.
    """
    from holdfast.validation.rules.network import ingress_of, lets

    for file_system, node in app.each(FILE_SYSTEM):
        ports = _PORTS.get(str(node.get("FileSystemType").value))
        # Where a cluster mounts it, another rule looks at both sides.
        mounted = any(True for _each in app.each("AWS::SageMaker::Cluster"))
        if ports is None or mounted:
            continue
        groups = [entry.resource("AWS::EC2::SecurityGroup") for entry in node.get("SecurityGroupIds").items() or ()]
        known = [group for group in groups if group is not None]
        if not groups or len(known) < len(groups):
            continue
        rules = [each for group in known for each in ingress_of(app, group)]
        closed = [port for port in ports if not any(lets(each, port) for each in rules if each is not None)]
        if None not in rules and closed:
            yield refused(
                f"{file_system.path}.SecurityGroupIds",
                f"groups without port {', '.join(map(str, closed))}: {', '.join(g.logical_id for g in known)}",
                allowed=_ALL_PORTS[str(node.get("FileSystemType").value)],
                fix=f"let TCP {', '.join(map(str, closed))} into {known[0].logical_id}",
            )


@rule(
    "HF656",
    title="Names of buckets are ones that S3 accepts",
    each=(BucketName, App),
    source="S3 user guide, 'General purpose bucket naming rules'; aws-cdk-lib, Bucket.validateBucketName",
)
def bucket_names(item: BucketName | App, _: Deployment) -> Iterator[Broken]:
    """
    3 to 63 lower-case letters, digits, dots and hyphens, beginning and ending with a letter or digit, without two dots
    side by side, not in the form of an IP address, and without the beginnings and ends that S3 keeps for itself. The
    CDK refuses a dot beside a hyphen, too, so an environment file cannot name such a bucket.
    """
    if isinstance(item, BucketName):
        if ".-" in item.name or "-." in item.name:
            yield refused(
                item.path,
                f"{show(item.name)}, with a dot beside a hyphen",
                allowed="a name that the CDK accepts, too: no dot beside a hyphen",
                fix="take another bucket",
            )
        yield from _bucket_name(item.path, item.name, whole=True)
        return
    for bucket, node in item.each("AWS::S3::Bucket"):
        name = node.get("BucketName")
        text = text_of(name.value)
        if text is not None:
            yield from _bucket_name(f"{bucket.path}.BucketName", text, whole=name.value == text)


def _bucket_name(path: str, text: str, *, whole: bool) -> Iterator[Broken]:
    known = text.replace("${...}", "xx")
    address = re.fullmatch(r"\d+(\.\d+){3}", text)
    if address:
        yield refused(path, show(text), allowed="a name that is no IP address", fix=f"write {text.replace('.', '-')}")
    elif (
        not re.fullmatch(r"[a-z0-9][a-z0-9.-]*[a-z0-9]", known) or ".." in known or (whole and not 3 <= len(text) <= 63)
    ):
        right = re.sub(r"\.{2,}", ".", re.sub(r"[^a-z0-9.-]", "-", known.lower()))[:63]
        yield refused(
            path,
            show(text),
            allowed="3 to 63 lower-case letters, digits, single dots and hyphens",
            fix=f"write {right}" if whole else "write lower-case letters, digits and hyphens",
        )
    taken = [each for each in BEGINNINGS if text.startswith(each)] + [each for each in ENDS if text.endswith(each)]
    if taken:
        yield refused(
            path,
            f"{text}, with {taken[0]}, which S3 keeps for itself",
            allowed=f"a name without {taken[0]}",
            fix="name the bucket itself",
        )
