"""3xx: what the training operator needs."""

from collections.abc import Iterator

from holdfast.validation.cloudformation import Node, Resource
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.iam import grants_of, managed_names, reads_all, role_of
from holdfast.validation.model import App, Deployment, EnvironmentFile, references_in
from holdfast.validation.rules.eks.lookups import ADDON, cluster_of

OPERATOR = "SageMaker developer guide, 'Installing the training operator'"
OPERATOR_POLICY = "AmazonSageMakerHyperPodTrainingOperatorAccess"
OPERATOR_ACCOUNT, OPERATOR_NAMESPACE = "hp-training-operator-controller-manager", "aws-hyperpod"
_OPERATOR = "amazon-sagemaker-hyperpod-training-operator"


@rule(
    "HF337",
    title="The cluster of the training operator has its tag",
    each=App,
    source="SageMaker developer guide, 'Installing the training operator': tag SageMaker:true",
)
def operator_tag(app: App, _: Deployment) -> Iterator[Broken]:
    """
    "Make sure that you've tagged your HyperPod cluster with the key-value pair SageMaker:true. Otherwise, the
    installation will fail."
    """
    for _addon, node in app.each(ADDON):
        if node.get("AddonName").value != _OPERATOR:
            continue
        tagged = list(_both_clusters(app, node))
        tags = [_tags(app, cluster) for cluster in tagged]
        if (
            tagged
            and None not in tags
            and not any(each is not None and each.get("SageMaker") == "true" for each in tags)
        ):
            yield refused(
                f"{tagged[0].path}.Tags",
                "no tag SageMaker: true, beside the training operator",
                allowed="this tag on the HyperPod cluster",
                fix=f"add the tag SageMaker: true to {tagged[0].logical_id}",
            )


@rule("HF356", title="The operator of HyperPodPyTorchJobs has its image", each=EnvironmentFile, source="Holdfast")
def holdfast_operator_image(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """Holdfast's operator runs them in place of AWS's, and comes from images.job_operator."""
    if file.training_operator == "holdfast" and file.operator_image_source is None:
        yield refused(
            file.at("training_operator"),
            "holdfast without images.job_operator",
            allowed="holdfast with images.job_operator, or true for AWS's operator",
            fix="add images.job_operator",
        )


@rule("HF346", title="The training operator's pods have their role", each=App, source=OPERATOR)
def operator_identity(app: App, _: Deployment) -> Iterator[Broken]:
    """
    The operator runs as the service account hp-training-operator-controller-manager in the namespace aws-hyperpod, with
    a role that has AmazonSageMakerHyperPodTrainingOperatorAccess. An association of another name gives it nothing.
    """
    if not any(node.get("AddonName").value == _OPERATOR for _addon, node in app.each(ADDON)):
        return
    for node, role, policies in identities_of_operator(app):
        for place, expected in (
            (node.get("ServiceAccount"), OPERATOR_ACCOUNT),
            (node.get("Namespace"), OPERATOR_NAMESPACE),
        ):
            if isinstance(place.value, str) and place.value != expected:
                yield refused(place.path, show(place.value), allowed=expected, fix=f"write {expected}")
        if (role is not None and reads_all(app, role) and managed_names(app, role) is not None) and (
            OPERATOR_POLICY not in policies
            and not any(each.names("sagemaker:DescribeClusterNode") for each in grants_of(app, role))
        ):
            yield refused(
                f"{role.path}.ManagedPolicyArns",
                f"{', '.join(policies) or 'no policy'} for the training operator",
                allowed=OPERATOR_POLICY,
                fix=f"attach {OPERATOR_POLICY} to {role.logical_id}",
            )


def identities_of_operator(app: App) -> Iterator[tuple[Node, Resource | None, list[str]]]:
    """Pod identity associations that are meant for the operator: properties, role, and its managed policies."""
    for association, node in app.each("AWS::EKS::PodIdentityAssociation"):
        role = role_of(node.get("RoleArn"))
        policies = [name for _path, name in managed_names(app, role) or ()] if role is not None else []
        meant = "training-operator" in str(node.get("ServiceAccount").value) or OPERATOR_POLICY in policies
        if meant or "operator" in association.logical_id.lower():
            yield node, role, policies


@rule("HF347", severity="warning", title="The training operator has cert-manager", each=App, source=OPERATOR)
def operator_dependencies(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Its webhooks need certificates. On a cluster that is there already cert-manager may be, too; where one template
    installs the operator and other add-ons, it is expected among them.
    """
    for addon, node in app.each(ADDON):
        if node.get("AddonName").value != _OPERATOR or cluster_of(app, node) is not None:
            continue
        same = [own for _each, own in app.each(ADDON) if own.get("ClusterName").token == node.get("ClusterName").token]
        names = {own.get("AddonName").text() for own in same}
        charts = any(each.type.startswith("Custom::") for each in app.all())
        if len(names) > 1 and "cert-manager" not in names and not charts:
            yield Broken(
                path=f"{addon.path}.AddonName",
                message=f"{addon.logical_id} without cert-manager among the add-ons of the template",
                fix="add the add-on cert-manager, and let the operator depend on it",
            )


def _both_clusters(app: App, node: Node) -> Iterator[Resource]:
    eks = cluster_of(app, node)
    all_of_them = [each for each, _own in app.each("AWS::SageMaker::Cluster")]
    if eks is None and len(all_of_them) == 1:
        yield all_of_them[0]
    for hyperpod, own in app.each("AWS::SageMaker::Cluster"):
        arn = own.get("Orchestrator", "Eks", "ClusterArn")
        if eks is not None and eks in {each.resource for each in references_in(arn.value)}:
            yield hyperpod
    if eks is not None:
        yield eks


def _tags(app: App, resource: Resource) -> dict[str, str] | None:
    found = app.node(resource).get("Tags").mapping("Key", "Value")
    return found if isinstance(found, dict) else None
