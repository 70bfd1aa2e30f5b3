"""08x: what is there already, as far as the file alone can tell."""

import re
from collections.abc import Iterator

from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.model import App, Choice, Deployment, EnvironmentFile, Existing, Reference, Scripts, Subnet

OURS = "Holdfast"
ROLE_POLICY = "SageMaker developer guide, 'AWS managed policy: AmazonSageMakerClusterInstanceRolePolicy'"
GUIDE = "SageMaker developer guide, 'Getting started with SageMaker HyperPod using the AWS CLI'"
MANAGED_PREFIX = "sagemaker-"
COMPASS = {"north": "n", "south": "s", "east": "e", "west": "w", "central": "c"}


@rule("HF080", title="A resource is either new or existing, not both", each=Choice, source=OURS)
def one_of_two_ways(choice: Choice, _: Deployment) -> Iterator[Broken]:
    """
    A file system, a control plane, a dataset or a zone is given in one of two ways: as what a new one shall be, or by
    naming the one that is there. With both it is open which one is meant, with neither both are missing.
    """
    if choice.there and choice.made:
        yield refused(
            choice.at(choice.made[0]),
            f"{' and '.join(choice.made)} beside {choice.other}",
            allowed=f"{choice.what} in one of the two ways",
            fix=f"remove {' and '.join(choice.made)}, or {choice.other}",
        )
    if not choice.there and choice.lacking:
        yield refused(
            choice.path,
            f"neither {' and '.join(choice.lacking)} nor {choice.other}",
            allowed=f"{choice.what} in one of the two ways",
            fix=f"add {choice.lacking[0]}, or {choice.other}",
        )


@rule("HF081", title="An existing network names its VPC where something needs it", each=Existing, source=OURS)
def vpc_is_known(existing: Existing, _: Deployment) -> Iterator[Broken]:
    """
    Nodes and file systems need a subnet and a security group alone. A function that installs Helm charts, a database
    and endpoints are made in a VPC, which has to be named then.
    """
    if existing.needs_vpc and not existing.has_vpc:
        yield refused(
            existing.at("has_vpc"),
            "no vpc_id",
            allowed=f"the VPC, because of {', '.join(existing.needs_vpc)}",
            fix="add vpc_id",
        )


@rule(
    "HF082",
    title="Existing resources are in the environment's account and region, and roles are no service-linked ones",
    each=(Reference, App),
    source="SageMaker API reference, CreateCluster; IAM user guide, 'Grant a user permissions to pass a role to an AWS "
    "service' and 'Permissions boundaries for IAM entities'; FSx for Lustre user guide, 'Mounting from an Amazon "
    "EC2 instance'",
)
def of_this_place(reference: Reference | App, deployment: Deployment) -> Iterator[Broken]:
    """
    A role is passed within its account and has a boundary of it, a HyperPod cluster joins an EKS cluster of its own
    account, and a file system is mounted where the nodes are. HF035 tells of ARNs of another region. A service-linked
    role is assumed by its own service alone.
    """
    if isinstance(reference, App):
        yield from _boundaries(reference)
        return
    if ":role/aws-service-role/" in reference.name:
        yield refused(
            reference.path,
            f"the service-linked role {reference.name.rpartition('/')[2]}",
            allowed="roles that SageMaker can assume",
            fix="name a role whose trust policy names sagemaker.amazonaws.com",
        )
    if reference.region is not None and reference.region != deployment.region:
        yield refused(
            reference.path,
            f"{reference.what} {reference.name} of {reference.region}",
            allowed=f"one of {deployment.region}, because {reference.why}",
            fix=f"name one of {deployment.region}, or make the environment in {reference.region}",
        )
    if reference.account is not None and reference.account != deployment.account:
        yield refused(
            reference.path,
            f"{reference.what} {reference.name} of account {reference.account}",
            allowed=f"one of account {deployment.account}, because {reference.why}",
            fix="name one of the account, or correct the account",
        )


@rule(
    "HF086",
    title="The DNS name of a file system begins with its id",
    each=Reference,
    source="FSx for Lustre user guide, 'Mounting from an Amazon EC2 instance'",
)
def name_of_the_file_system(reference: Reference, _: Deployment) -> Iterator[Broken]:
    """Nodes mount by the name, and everything else is made for the id: with two file systems data goes astray."""
    if not reference.name.startswith(reference.beginning):
        yield refused(
            reference.path,
            reference.name,
            allowed=f"a name that begins with {reference.beginning}",
            fix=f"write {reference.beginning}.{reference.name.partition('.')[2]}, or leave it out",
        )


@rule(
    "HF088",
    title="Lustre and home directories are different file systems",
    each=Existing,
    source="FSx API reference, FileSystemType: a file system is of one type",
)
def two_file_systems(existing: Existing, _: Deployment) -> Iterator[Broken]:
    """One is of the type LUSTRE, the other of the type OPENZFS."""
    seen: dict[str, str] = {}
    for each in existing.file_systems:
        if each.id in seen:
            yield refused(
                each.path,
                f"{each.id} again, after {seen[each.id]}",
                allowed="a file system of its own type",
                fix="name the OpenZFS file system here",
            )
        seen.setdefault(each.id, each.path)


def _boundaries(app: App) -> Iterator[Broken]:
    for role, node in app.each("AWS::IAM::Role", "AWS::IAM::User"):
        arn = node.get("PermissionsBoundary").value
        account = arn.split(":")[4] if isinstance(arn, str) and arn.count(":") >= 5 else "aws"
        if account != "aws" and role.template.account not in (None, account):
            yield refused(
                f"{role.path}.PermissionsBoundary",
                f"the permissions boundary {arn} of account {account}",
                allowed=f"one of account {role.template.account}, or of AWS",
                fix="name a policy of the account",
            )


@rule(
    "HF083",
    title="An existing role may read the lifecycle scripts",
    each=Scripts,
    severity="warning",
    source=f"{ROLE_POLICY}; {GUIDE}",
)
def readable_scripts(scripts: Scripts, _: Deployment) -> Iterator[Broken]:
    """
    Nothing is added to a role that is there already. The managed policy of HyperPod's roles covers buckets whose names
    begin with `sagemaker-`; for any other the role has to have s3:GetObject and s3:ListBucket of its own, or every node
    fails at its first step.
    """
    if scripts.role is not None and not scripts.bucket.startswith(MANAGED_PREFIX):
        yield Broken(
            path=scripts.path,
            message=f"nodes have the role {scripts.role}, whose managed policy does not cover the bucket "
            f"{scripts.bucket}",
            fix=f"check that the role may read it, or take a bucket that begins with {MANAGED_PREFIX}",
        )


@rule("HF084", title="A group's lifecycle mode and script belong together", each=Scripts, source=GUIDE)
def hook_of_the_mode(scripts: Scripts, _: Deployment) -> Iterator[Broken]:
    """
    `on_create` is for mode custom, where scripts do all of it; `on_init_complete` is for mode extension, where HyperPod
    makes the node ready first. HyperPod takes one of them.
    """
    if None not in (scripts.mode, scripts.required_mode) and scripts.required_mode not in ("none", scripts.mode):
        hook = "on_create" if scripts.mode == "custom" else "on_init_complete"
        yield refused(
            scripts.at("required_mode"),
            f"mode {scripts.required_mode} and scripts with {hook}",
            allowed=f"mode {scripts.mode} with {hook}",
            fix=f"remove the mode, or name the script of mode {scripts.required_mode}",
        )


@rule(
    "HF085",
    title="Zone ids are of the region",
    each=(Subnet, EnvironmentFile),
    source="RAM user guide, 'Availability Zone IDs for your AWS resources'",
)
def zone_ids(item: Subnet | EnvironmentFile, deployment: Deployment) -> Iterator[Broken]:
    """The id of a zone begins with a short form of its region: use1-az4 is in us-east-1."""
    prefix = _prefix(deployment.region or "")
    zone = item.availability_zone_id if isinstance(item, Subnet) else item.control_plane_zone
    if prefix is not None and re.search(r"-az\d+$", zone or "") and not re.match(rf"{prefix}-", zone or ""):
        yield refused(
            item.at("availability_zone_id" if isinstance(item, Subnet) else "control_plane_zone"),
            zone or "",
            allowed=f"an id of {deployment.region}, which begins with {prefix}-",
            fix=f"write {prefix}-az1, or the one where your capacity is",
        )


def _prefix(region: str) -> str | None:
    """Short form of a region; None for an unknown form."""
    match = re.fullmatch(r"([a-z]{2})(-gov|-iso[a-z]?)?-((?:north|south|east|west|central)+)-(\d)", region)
    if match is None or (match[2] or "").startswith("-iso"):
        return None
    words = re.findall("|".join(COMPASS), match[3])
    return f"{match[1]}{'g' if match[2] else ''}{''.join(COMPASS[word] for word in words)}{match[4]}"
