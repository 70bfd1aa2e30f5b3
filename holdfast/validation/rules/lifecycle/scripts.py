"""5xx: lifecycle scripts and the accounts that they make."""

import re
from collections.abc import Iterator

from holdfast.catalog import limits
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.iam import scripts_bucket
from holdfast.validation.model import Deployment, EnvironmentFile, InstanceGroup, Lifecycle, Script
from holdfast.validation.rules.lifecycle.configuration import API, S3_URI

ROLE = "SageMaker developer guide, 'IAM role for SageMaker HyperPod'"
FETCH = re.compile(
    r"^\s*(?:sudo\s+)?(?:curl|wget|git\s+clone|apt(?:-get)?\s+(?:-\S+\s+)*(?:install|update)|yum\s+install|dnf\s+install|"
    r"pip3?\s+install|conda\s+install|docker\s+pull)\b(?P<rest>.*)"
)
PIPED = re.compile(r"\b(?:curl|wget)\b[^|#]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b")
SECRET = re.compile(r"\bAKIA[0-9A-Z]{16}\b|-----BEGIN [A-Z ]*PRIVATE KEY-----|aws_secret_access_key\s*=\s*\S{20}")


@rule(
    "HF502",
    title="The role can read the lifecycle scripts",
    each=InstanceGroup,
    source=f"{API}: s3://sagemaker-; {ROLE}",
)
def readable_scripts(group: InstanceGroup, deployment: Deployment) -> Iterator[Broken]:
    """
    The managed policy of HyperPod covers buckets named sagemaker-... only. Scripts in another bucket need a statement
    of the role's own, or every node fails at its first step. An environment file gives its own role that statement, and
    HF083 tells of a role that is there already.
    """
    if deployment.file is not None:
        return
    if group.lifecycle is None:
        return
    place, app = group.lifecycle.at("source_s3_uri"), deployment.app
    bucket = None if app is None else scripts_bucket(app, place)
    if app is not None and bucket is not None and app.node(bucket).get("BucketName").present:
        bucket = None
    if bucket is None and (group.lifecycle.source_s3_uri or "s3://sagemaker-").startswith("s3://sagemaker-"):
        return
    if group.role is None or not group.role.allows("s3:GetObject"):
        yield refused(
            place,
            show(group.lifecycle.source_s3_uri)
            if bucket is None
            else f"{bucket.logical_id}, a bucket that CloudFormation names after its stack",
            allowed="s3://sagemaker-..., or a role that may read the bucket",
            fix="name the bucket sagemaker-..., or grant the role to read it",
        )


@rule(
    "HF504",
    title="Lifecycle scripts exist",
    each=Lifecycle,
    source=f"{API}; awsome-distributed-ai, observability README",
)
def scripts_are_there(lifecycle: Lifecycle, _: Deployment) -> Iterator[Broken]:
    """A script that is not under the URI fails every node of the group, half an hour into the creation."""
    there = {script.name for script in lifecycle.scripts if script.text is not None}
    for script in lifecycle.scripts:
        if script.text is None:
            yield refused(script.path, show(script.name), allowed="a file that is there", fix="correct the path")
    for attribute in ("on_create", "on_init_complete"):
        name = getattr(lifecycle, attribute)
        if name is not None and name not in there:
            yield refused(
                lifecycle.at(attribute), show(name), allowed="a file under the URI", fix="add it to the scripts"
            )


@rule(
    "HF505", title="Scripts have Unix line ends", each=Script, source="bash(1): a carriage return is part of the word"
)
def line_ends(script: Script, _: Deployment) -> Iterator[Broken]:
    """A script that was saved on Windows fails with "$'\\r': command not found", or its interpreter is not found."""
    if script.text is None or "\r\n" not in script.text:
        return
    if script.name.endswith(".sh") or script.text.startswith("#!"):
        yield refused(script.path, f"{script.name} with CRLF", allowed="LF", fix="save it with Unix line ends")


@rule("HF506", title="Scripts begin with an interpreter line (#!)", each=Script, source="execve(2)")
def interpreter(script: Script, _: Deployment) -> Iterator[Broken]:
    """
    The first line of an executable script is #! and an absolute path. Without it the script fails, or runs in another
    shell than it was written for.
    """
    if script.text is not None and script.name.endswith(".sh") and not script.text.startswith("#!/"):
        first = script.text.partition("\n")[0][:40].rstrip()
        yield refused(script.path, show(first), allowed="#! and a path in the first line", fix="begin with #!/bin/bash")


@rule(
    "HF507",
    severity="warning",
    title="Scripts download nothing in a closed network",
    each=Script,
    source="awsome-distributed-ai 186, 189: GitHub at boot",
)
def fetch_in_closed_network(script: Script, deployment: Deployment) -> Iterator[Broken]:
    """Without a way out, a download waits for its timeout, on every node, and then the node fails."""
    if deployment.network is None or deployment.network.way_out:
        return
    for number, line in lines_of(script):
        fetch = FETCH.match(line)
        if fetch is not None and "s3.amazonaws.com" not in fetch["rest"]:
            yield Broken(
                path=script.path,
                message=f"line {number} of {script.name} fetches in a network without a way out: {line.strip()[:60]}",
                fix="put what it fetches beside the scripts, into an image, or into S3",
            )


@rule(
    "HF508",
    severity="warning",
    title="Scripts do not run what they download unchecked",
    each=Script,
    source="awsome-distributed-ai 678, 679, 680: fetches at boot fail at scale",
)
def piped_download(script: Script, _: Deployment) -> Iterator[Broken]:
    """
    What is piped into a shell is another thing tomorrow than it was tested with today, and a download that breaks off
    is run as far as it came.
    """
    for number, line in lines_of(script):
        if PIPED.search(line):
            yield Broken(
                path=script.path,
                message=f"line {number} of {script.name} pipes a download into a shell: {line.strip()[:60]}",
                fix="put the file beside the scripts, or check its digest first",
            )


@rule(
    "HF509",
    title="Scripts hold no credentials",
    each=Script,
    source="IAM user guide, 'Security best practices'",
    suppressible=True,
)
def credentials(script: Script, _: Deployment) -> Iterator[Broken]:
    """Lifecycle scripts lie in S3 and on every node. Nodes have a role, and secrets have Secrets Manager."""
    if script.text is not None and SECRET.search(script.text):
        yield refused(
            script.path,
            f"what looks like a key in {script.name}",
            allowed="none",
            fix="use the nodes' role or Secrets Manager, and make the key invalid",
        )


@rule("HF515", title="Users have names, uids and homes of their own", each=EnvironmentFile, source="useradd(8)")
def unique_users(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """
    Two names of one uid own each other's files; a name that stands twice is made once; a home belongs to one user.
    """
    for attribute in ("name", "uid", "home"):
        seen: dict[object, str] = {}
        for user in file.users:
            value = getattr(user, attribute)
            if value is None:
                continue
            if value in seen:
                yield refused(
                    user.at(attribute),
                    f"{show(value)} again, after {seen[value]}",
                    allowed=f"a {attribute} that no other user has",
                    fix=f"give this user another {attribute}",
                )
            seen.setdefault(value, user.at(attribute))


@rule(
    "HF516",
    title="Users take neither names nor folders of the operating system",
    each=EnvironmentFile,
    source="accounts of HyperPod's AMI; holdfast/catalog/limits.json",
)
def system_users(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """
    An account of such a name is there already with another uid, so making it fails, or takes a service's place. What is
    below a folder of the image may go with an update of it.
    """
    for user in file.users:
        if user.name in limits("system_users"):
            yield refused(user.at("name"), show(user.name), allowed="a name that the AMI has not", fix="take another")
        below = next((tree for tree in limits("system_trees") if (user.home or "").startswith(f"{tree}/")), "")
        if below:
            yield refused(
                user.at("home"),
                f"{show(user.home)}, where the node's image has files in {below}",
                allowed="a folder of the shared file system, or below /home",
                fix=f"remove home, or write /home/{user.name}",
            )


@rule(
    "HF517",
    severity="warning",
    title="A changed lifecycle script changes its S3 URI",
    each=Lifecycle,
    source="sample-physical-ai-scaffolding-kit hashes scripts into the prefix; s3_deployment does not",
)
def versioned_uri(lifecycle: Lifecycle, deployment: Deployment) -> Iterator[Broken]:
    """
    CloudFormation sees a change when SourceS3Uri changes. With a prefix that stays, new nodes of one group run other
    scripts than old ones, and nothing says so. Put a hash or a version into the prefix. Of a bucket that exists
    already its owner versions the scripts.
    """
    match = S3_URI.fullmatch(lifecycle.source_s3_uri or "")
    if match is None or re.search(r"\d", match[3]):
        return
    if deployment.app is not None and scripts_bucket(deployment.app, lifecycle.at("source_s3_uri")) is not None:
        yield Broken(
            path=lifecycle.at("source_s3_uri"),
            message=f"the prefix {show(match[3])} has no version: a changed script leaves the template unchanged",
            fix="put a hash of the scripts into the prefix",
        )


@rule("HF518", title="Lifecycle scripts have different file names", each=Lifecycle, source="Holdfast")
def script_names(lifecycle: Lifecycle, deployment: Deployment) -> Iterator[Broken]:
    """
    Scripts of an environment file are put into one folder of the bundle, and checks of the health agent into another,
    whatever folders they came from. The second of one name would take the place of the first.
    """
    if deployment.file is None:
        return
    seen: dict[str, str] = {}
    for script in lifecycle.scripts:
        name = script.name.rpartition("/")[2]
        if name in seen:
            yield refused(
                script.path,
                f"{show(name)} again, after {seen[name]}",
                allowed="a file name that no other script has",
                fix="rename the file",
            )
        seen.setdefault(name, script.path)


def _is_shell(script: Script) -> bool:
    return script.name.endswith(".sh") or (script.text or "").startswith("#!")


def lines_of(script: Script) -> Iterator[tuple[int, str]]:
    if script.text is None or not _is_shell(script):
        return
    for number, line in enumerate(script.text.splitlines(), start=1):
        if not line.lstrip().startswith("#"):
            yield number, line
