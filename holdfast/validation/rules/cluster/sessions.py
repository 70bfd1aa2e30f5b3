"""7xx: sessions that run as a user of the node."""

from collections.abc import Iterator

from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import Deployment, SessionDocument

RUN_AS = "Systems Manager user guide, 'Turn on Run As support for Linux and macOS managed nodes'"
SCHEMA = "Systems Manager user guide, 'Session document schema', runAsEnabled"


@rule(
    "HF363", title="Sessions with Run As name a user, and not root", each=SessionDocument, source=f"{RUN_AS}; {SCHEMA}"
)
def run_as(document: SessionDocument, _: Deployment) -> Iterator[Broken]:
    """
    With Run As, sessions of roles without the tag SSMSessionRunAs start as the document's default user, or fail.
    Session Manager refuses root.
    """
    if document.default_user in (None, "", "root"):
        yield refused(
            document.at("default_user"),
            "no default user" if not document.default_user else show(document.default_user),
            allowed="an account of the nodes other than root",
            fix="name an account that all nodes have, such as ubuntu",
        )


@rule(
    "HF364",
    severity="warning",
    title="The default user of sessions is an account of the nodes",
    each=SessionDocument,
    source=RUN_AS,
)
def accounts(document: SessionDocument, deployment: Deployment) -> Iterator[Broken]:
    """
    Session Manager starts no session as an account that the node lacks. Known are those of lifecycle.users and of the
    AMI: ubuntu under Slurm, ec2-user on EKS. Suppress this where your scripts or a directory make others.
    """
    file, user = deployment.file, document.default_user
    if file is None or user in (None, "", "root"):
        return
    known = [*(each.name for each in file.users), "ubuntu" if deployment.cluster.eks is None else "ec2-user"]
    if user not in known:
        yield Broken(
            path=document.at("default_user"),
            message=f"{show(user)} is no known account of the nodes: {', '.join(known)}",
            fix=f"write {known[0]}, or add it to lifecycle.users",
        )
