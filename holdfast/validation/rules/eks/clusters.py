"""3xx: EKS in templates: versions and their support, add-ons among themselves, who gets in, addresses of services."""

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from holdfast.catalog import instance_types
from holdfast.catalog.facts import facts_date, kubernetes_support, page_fact
from holdfast.validation.cloudformation import Node, Resource, closest
from holdfast.validation.engine import Broken, refused, rule, said
from holdfast.validation.iam import grants_in, grants_of, managed_names, principals, reads_all, role_of
from holdfast.validation.model import App, Deployment, Eks, EnvironmentFile, InstanceGroup, references_in, text_of

SUPPORT = "EKS user guide, 'Understand the Kubernetes version lifecycle on EKS'"
ADDONS = "EKS user guide, 'AWS add-ons'"
POD_IDENTITY = "EKS user guide, 'Learn how EKS Pod Identity grants pods access to AWS services'"
ACCESS = "EKS user guide, 'Create access entries' and 'Review access policy permissions'"
CLUSTER, ADDON, ENTRY = "AWS::EKS::Cluster", "AWS::EKS::Addon", "AWS::EKS::AccessEntry"
_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)-eksbuild\.(\d+)")
_NODE_TYPES = ("EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "HYPERPOD_LINUX", "EC2")
_ENTRY_TYPES = ("STANDARD", *_NODE_TYPES, "HYBRID_LINUX")
OPERATOR = "SageMaker developer guide, 'Installing the training operator'"
OPERATOR_POLICY = "AmazonSageMakerHyperPodTrainingOperatorAccess"
OPERATOR_ACCOUNT, OPERATOR_NAMESPACE = "hp-training-operator-controller-manager", "aws-hyperpod"
PODS_OF_ADDONS = 12
_OPERATOR = "amazon-sagemaker-hyperpod-training-operator"
_USUAL_SERVICES = ipaddress.IPv4Network("172.20.0.0/16")
_SERVICE_BLOCKS = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")


@rule(
    "HF330",
    title="The Kubernetes version is one that EKS can still create",
    each=(EnvironmentFile, App),
    source=SUPPORT,
)
def version_exists(item: EnvironmentFile | App, deployment: Deployment) -> Iterator[Broken]:
    """
    At the end of extended support EKS makes no cluster of a version any more, and updates those that there are by
    itself. A version that has not come yet cannot be had either.
    """
    today = deployment.today or facts_date()
    for path, version in _versions(item):
        known = kubernetes_support()
        if version in known and known[version].extended_until < today:
            yield refused(
                path,
                f"{version}, whose extended support ended on {known[version].extended_until}",
                allowed=f"{', '.join(_supported(deployment))}",
                fix=f'write "{_newest_standard(deployment)}"',
            )
        elif version not in known and re.fullmatch(r"1\.\d+", version):
            older = tuple(map(int, version.split("."))) < min(tuple(map(int, each.split("."))) for each in known)
            what = "which EKS makes no more" if older else "which EKS does not have yet"
            yield refused(
                path,
                f"{version}, {what}",
                allowed=", ".join(_supported(deployment)),
                fix=f'write "{_newest_standard(deployment)}"',
            )


@rule(
    "HF331",
    severity="warning",
    title="The Kubernetes version is in standard support",
    each=(EnvironmentFile, App),
    source=SUPPORT,
)
def version_is_supported(item: EnvironmentFile | App, deployment: Deployment) -> Iterator[Broken]:
    """
    After the end of standard support a cluster costs several times as much per hour, and a year later EKS updates it by
    itself.
    """
    today = deployment.today or facts_date()
    for path, version in _versions(item):
        known = kubernetes_support().get(version)
        if known is not None and known.standard_until < today <= known.extended_until:
            yield Broken(
                path=path,
                message=f"standard support of {version} ended on {known.standard_until}; "
                f"it costs more until {known.extended_until}, and EKS then updates it by itself",
                fix=f'write "{_newest_standard(deployment)}", as far as what runs there takes it',
            )


@rule("HF332", title="EKS add-ons have names that exist", each=App, source=ADDONS, suppressible=True)
def addon_names(app: App, _: Deployment) -> Iterator[Broken]:
    """
    EKS refuses an add-on of another name. One that has come since the list was made can be accepted.
    """
    known = set(page_fact("eks_addons"))
    for _addon, node in app.each(ADDON):
        name = node.get("AddonName")
        if isinstance(name.value, str) and name.value not in known and (meant := closest(name.value, known)):
            yield refused(name.path, said(name.value), allowed="add-ons of EKS", fix=f"did you mean {meant}?")


@rule(
    "HF333",
    title="Versions of EKS add-ons support the cluster's Kubernetes version",
    each=App,
    source=f"{ADDONS}; Kubernetes, 'Version skew policy'",
)
def addon_versions(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A version is written vMAJOR.MINOR.PATCH-eksbuild.N. That of kube-proxy is the Kubernetes version: never newer than
    the control plane, and at most three minors older.
    """
    for _addon, node in app.each(ADDON):
        version = node.get("AddonVersion")
        if not isinstance(version.value, str):
            continue
        match = _VERSION.fullmatch(version.value)
        if match is None:
            yield refused(
                version.path,
                said(version.value),
                allowed="vMAJOR.MINOR.PATCH-eksbuild.N",
                fix=_as_version(version.value),
            )
            continue
        cluster = _cluster_of(app, node)
        kubernetes = app.node(cluster).get("Version").text() if cluster is not None else None
        if (
            node.get("AddonName").value == "kube-proxy"
            and isinstance(kubernetes, str)
            and re.fullmatch(r"1\.\d+", kubernetes)
        ):
            behind = int(kubernetes.partition(".")[2]) - int(match[2])
            if not 0 <= behind <= 3:
                yield refused(
                    version.path,
                    f"kube-proxy {match[1]}.{match[2]} with Kubernetes {kubernetes}",
                    allowed=f"kube-proxy of {kubernetes}",
                    fix=f"take the version for {kubernetes}, or leave AddonVersion out",
                )


@rule(
    "HF334",
    title="Pod identity associations have the Pod Identity Agent",
    each=App,
    source=f"{POD_IDENTITY}, 'Set up the Amazon EKS Pod Identity Agent'",
)
def pod_identity_agent(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A pod identity association does nothing where the add-on eks-pod-identity-agent does not run: pods get no
    credentials.
    """
    addons = list(app.each(ADDON))
    names = [node.get("AddonName").text() for _addon, node in addons]
    if not all(isinstance(name, str) for name in names) or not app.complete or "eks-pod-identity-agent" in names:
        return
    users = [resource for resource, _node in app.each("AWS::EKS::PodIdentityAssociation")]
    users += [resource for resource, node in addons if node.get("PodIdentityAssociations").present]
    for resource in users:
        cluster = _cluster_of(app, app.node(resource))
        if (
            cluster is not None
            and cluster.template is resource.template
            and not app.node(cluster).get("ComputeConfig", "Enabled").present
        ):
            yield refused(
                resource.path,
                "pod identity without its agent",
                allowed="the add-on eks-pod-identity-agent beside it",
                fix="add the add-on eks-pod-identity-agent",
            )


@rule(
    "HF335",
    title="Add-ons get their role in the way that its trust policy allows",
    each=App,
    source=f"{POD_IDENTITY}; EKS user guide, 'IAM roles for service accounts'",
)
def addon_roles(app: App, _: Deployment) -> Iterator[Broken]:
    """
    ServiceAccountRoleArn is for roles that trust the cluster's OIDC provider; PodIdentityAssociations for those that
    trust pods.eks.amazonaws.com. An add-on takes one of them.
    """
    for addon, node in app.each(ADDON):
        role = role_of(node.get("ServiceAccountRoleArn"))
        if node.get("ServiceAccountRoleArn").present and node.get("PodIdentityAssociations").present:
            yield refused(
                f"{addon.path}.ServiceAccountRoleArn",
                "a service account role and pod identity",
                allowed="one of the two",
                fix="keep one of them",
            )
        if role is None:
            continue
        grants = grants_in(app.node(role).get("AssumeRolePolicyDocument"))
        if grants and not any(
            principals(grant, "Federated") or not grant.node.get("Principal").known for grant in grants
        ):
            yield refused(
                f"{addon.path}.ServiceAccountRoleArn",
                f"{role.logical_id}, which trusts no OIDC provider",
                allowed="a role that trusts that of the cluster",
                fix=f"give {role.logical_id} through PodIdentityAssociations, or trust the OIDC provider",
            )


@rule(
    "HF336",
    title="Configuration of add-ons is JSON or YAML",
    each=App,
    source="EKS user guide, 'Determine fields you can customize for Amazon EKS add-ons'",
)
def addon_configuration(app: App, _: Deployment) -> Iterator[Broken]:
    """
    ConfigurationValues is one text with a JSON or YAML mapping in it.
    """
    for _addon, node in app.each(ADDON):
        values = node.get("ConfigurationValues")
        if isinstance(values.value, str) and values.value.strip().startswith(("{", "[")):
            try:
                ok = isinstance(json.loads(values.value), dict)
            except ValueError:
                ok = False
            if not ok:
                yield refused(
                    values.path,
                    "text that is no JSON object",
                    allowed="a JSON or YAML mapping",
                    fix="correct the JSON: check quotes, commas and braces",
                )


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


@rule("HF338", title="Access entries have a principal and type that EKS accepts", each=App, source=ACCESS)
def access_entries(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Types are EKS's words. Policies are for STANDARD, their ARN is arn:aws:eks::aws:cluster-access-policy/NAME, and a
    scope of type namespace names namespaces. Groups of a standard entry do not begin with system:.
    """
    known = set(page_fact("access_policies"))
    for entry, node in app.each(ENTRY):
        kind = node.get("Type").text()
        if isinstance(kind, str) and kind not in _ENTRY_TYPES:
            yield refused(
                f"{entry.path}.Type",
                said(kind),
                allowed=", ".join(_ENTRY_TYPES),
                fix=f"write {closest(kind, _ENTRY_TYPES) or 'STANDARD'}",
            )
        for group in node.get("KubernetesGroups").items() or ():
            if (
                isinstance(group.value, str)
                and re.match(r"^(system|eks|aws|amazon|iam):", group.value)
                and (kind or "STANDARD") == "STANDARD"
            ):
                yield refused(
                    group.path,
                    said(group.value),
                    allowed="groups that do not begin with system:, eks:, aws:, amazon: or iam:",
                    fix="use an access policy, such as AmazonEKSClusterAdminPolicy, or a group of your own",
                )
        if kind in _NODE_TYPES and kind not in ("HYPERPOD_LINUX", "EC2") and node.get("AccessPolicies").items():
            yield refused(
                f"{entry.path}.AccessPolicies",
                f"policies on an entry of type {kind}",
                allowed="none",
                fix="remove them, or write Type: STANDARD",
            )
        for policy in node.get("AccessPolicies").items() or ():
            yield from _access_policy(policy, known)


@rule(
    "HF339",
    title="The Kubernetes API endpoint can be reached",
    each=(EnvironmentFile, App),
    source="EKS user guide, 'Cluster API server endpoint'",
)
def endpoint_access(item: EnvironmentFile | App, _: Deployment) -> Iterator[Broken]:
    """
    Public access, private access, or both; without either nobody gets in. Blocks of addresses are for public access,
    and those of private networks never come from the internet.
    """
    if isinstance(item, EnvironmentFile):
        eks = item.data.get("eks")
        blocks = eks.get("public_access_cidrs") if isinstance(eks, dict) else None
        for index, text in enumerate(blocks if isinstance(blocks, list) else ()):
            if _is_private(text):
                yield _never_from_outside(f"eks.public_access_cidrs.{index}", str(text))
        return
    for _cluster, node in item.each(CLUSTER):
        vpc = node.get("ResourcesVpcConfig")
        public, private = (
            vpc.get("EndpointPublicAccess").boolean(default=True),
            vpc.get("EndpointPrivateAccess").boolean(default=False),
        )
        if public is False and private is False:
            yield refused(
                f"{vpc.path}.EndpointPrivateAccess",
                "neither public nor private access",
                allowed="at least one",
                fix="set EndpointPrivateAccess to true",
            )
        for block in vpc.get("PublicAccessCidrs").items() or ():
            if _is_private(block.value):
                yield _never_from_outside(block.path, str(block.value))


@rule(
    "HF344",
    title="Kubernetes' service addresses do not overlap the VPC",
    each=App,
    source="EKS API reference, KubernetesNetworkConfigRequest: serviceIpv4Cidr",
)
def service_block(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Services of Kubernetes have a block of their own, /24 to /12 inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16,
    that overlaps no block of the VPC. It cannot be changed later.
    """
    for _cluster, node in app.each(CLUSTER):
        block = node.get("KubernetesNetworkConfig", "ServiceIpv4Cidr")
        network = _network(block.value)
        if not isinstance(block.value, str):
            continue
        if (
            network is None
            or not 12 <= network.prefixlen <= 24
            or not any(network.subnet_of(ipaddress.IPv4Network(each)) for each in _SERVICE_BLOCKS)
        ):
            yield refused(
                block.path,
                said(block.value),
                allowed="a private block of /12 to /24 whose host bits are zero",
                fix="write 172.20.0.0/16",
            )
            continue
        for vpc in _vpcs(app, node):
            for other in _blocks(app, vpc):
                if network.overlaps(other):
                    yield refused(
                        block.path,
                        f"{network}, which overlaps {other} of {vpc.logical_id}",
                        allowed="a block that the VPC does not have",
                        fix=f"write {'10.100.0.0/16' if other.overlaps(_USUAL_SERVICES) else _USUAL_SERVICES}",
                    )


@rule(
    "HF341",
    title="Managed node groups have settings that EKS accepts",
    each=App,
    source="EKS user guide, 'Create a managed node group'; 'AL2 AMIs transition'",
)
def nodegroups(app: App, _: Deployment) -> Iterator[Broken]:
    """
    The desired size is between the least and the most. Amazon Linux 2 ends with Kubernetes 1.32. An AMI type belongs to
    the processor of the instance types.
    """
    last = int(str(page_fact("last_kubernetes_of_al2")).partition(".")[2])
    for group, node in app.each("AWS::EKS::Nodegroup"):
        sizes = [node.get("ScalingConfig", name).integer() for name in ("MinSize", "DesiredSize", "MaxSize")]
        if all(isinstance(each, int) for each in sizes) and sizes != sorted(sizes):
            yield refused(
                f"{group.path}.ScalingConfig",
                f"MinSize {sizes[0]}, DesiredSize {sizes[1]}, MaxSize {sizes[2]}",
                allowed="least, desired and most in this order",
                fix="correct the sizes",
            )
        kind = node.get("AmiType").text()
        cluster = _cluster_of(app, node)
        version = node.get("Version").text() or (
            app.node(cluster).get("Version").text() if cluster is not None else None
        )
        if (
            isinstance(kind, str)
            and kind.startswith("AL2_")
            and isinstance(version, str)
            and re.fullmatch(r"1\.\d+", version)
        ) and int(version.partition(".")[2]) > last:
            yield refused(
                f"{group.path}.AmiType",
                f"{kind} with Kubernetes {version}",
                allowed=f"Amazon Linux 2 up to 1.{last}",
                fix=f"write AL2023_{kind.removeprefix('AL2_').replace('_GPU', '')}_STANDARD",
            )
        for each in node.get("InstanceTypes").items() or ():
            if isinstance(each.value, str) and each.value.startswith("ml."):
                yield refused(
                    each.path,
                    f"{each.value}, a type of SageMaker",
                    allowed="types of EC2 in a node group of EKS",
                    fix=f"write {each.value.removeprefix('ml.')}, or make it an instance group of HyperPod",
                )
                continue
            if isinstance(each.value, str) and isinstance(kind, str):
                arm = bool(re.match(r"^[a-z]+\d+g[a-z]*\.", each.value))
                if arm != ("ARM" in kind) and kind != "CUSTOM":
                    yield refused(
                        each.path,
                        f"{each.value} with {kind}",
                        allowed="instance types of the AMI's processor",
                        fix="take an AMI type for ARM" if arm else "take an AMI type for x86",
                    )


@rule(
    "HF345",
    title="Add-ons have nodes to start on",
    each=Eks,
    source="SageMaker developer guide, 'Installing the training operator': runs on nodes with the label of HyperPod",
)
def nodes_for_addons(eks: Eks, deployment: Deployment) -> Iterator[Broken]:
    """
    The operator, its dependencies and the observability add-on run on the cluster's own nodes. With no node at first
    they wait, and the deployment that waits for them rolls back.
    """
    plane = eks.control_plane
    if plane is None or plane.node_roles:
        return
    groups = deployment.cluster.instance_groups
    wanted = [addon.name for addon in plane.addons if "hyperpod" in addon.name]
    if wanted and groups and sum(group.instance_count for group in groups) == 0:
        yield refused(
            groups[0].at("instance_count"),
            f"no node at first, beside {', '.join(wanted)}",
            allowed="at least one node for add-ons",
            fix="begin with a small group of one or two nodes, such as ml.m5.2xlarge",
        )


@rule("HF346", title="The training operator's pods have their role", each=App, source=OPERATOR)
def operator_identity(app: App, _: Deployment) -> Iterator[Broken]:
    """
    The operator runs as the service account hp-training-operator-controller-manager in the namespace aws-hyperpod, with
    a role that has AmazonSageMakerHyperPodTrainingOperatorAccess. An association of another name gives it nothing.
    """
    if not any(node.get("AddonName").value == _OPERATOR for _addon, node in app.each(ADDON)):
        return
    for association, node in app.each("AWS::EKS::PodIdentityAssociation"):
        account, space = node.get("ServiceAccount"), node.get("Namespace")
        role = role_of(node.get("RoleArn"))
        policies = [name for _path, name in managed_names(app, role) or ()] if role is not None else []
        meant = "training-operator" in str(account.value) or OPERATOR_POLICY in policies
        meant = meant or "operator" in association.logical_id.lower()
        if not meant:
            continue
        for place, wanted in ((account, OPERATOR_ACCOUNT), (space, OPERATOR_NAMESPACE)):
            if isinstance(place.value, str) and place.value != wanted:
                yield refused(place.path, said(place.value), allowed=wanted, fix=f"write {wanted}")
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


@rule("HF347", severity="warning", title="The training operator has cert-manager", each=App, source=OPERATOR)
def operator_dependencies(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Its webhooks need certificates. On a cluster that is there already cert-manager may be, too; where one template
    installs the operator and other add-ons, it is expected among them.
    """
    for addon, node in app.each(ADDON):
        if node.get("AddonName").value != _OPERATOR or _cluster_of(app, node) is not None:
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


@rule(
    "HF348", title="Add-ons and access entries name the template's own cluster", each=App, source=f"{ADDONS}; {ACCESS}"
)
def named_clusters(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A name that no cluster of the template has, in a template that makes one, is of another cluster or of none.
    """
    clusters = list(app.each(CLUSTER))
    names = [node.get("Name").value for _cluster, node in clusters]
    if not clusters or not all(isinstance(name, str) for name in names):
        return
    kinds = (ADDON, ENTRY, "AWS::EKS::Nodegroup", "AWS::EKS::PodIdentityAssociation", "AWS::EKS::FargateProfile")
    for resource, node in app.each(*kinds):
        name = node.get("ClusterName")
        if isinstance(name.value, str) and name.value not in names:
            yield refused(
                name.path,
                f"{said(name.value)}, which no cluster of the template is called",
                allowed=f"{', '.join(map(str, names))}",
                fix=f"write !Ref {clusters[0][0].logical_id} in {resource.logical_id}",
            )


@rule("HF349", severity="warning", title="Somebody has access to the Kubernetes cluster", each=App, source=ACCESS)
def somebody_gets_in(app: App, _: Deployment) -> Iterator[Broken]:
    """
    The creator of a cluster administers it only with BootstrapClusterCreatorAdminPermissions; everybody else needs an
    access entry. With neither nobody can use kubectl.
    """
    for cluster, node in app.each(CLUSTER):
        access = node.get("AccessConfig", "BootstrapClusterCreatorAdminPermissions")
        entries = [own for _entry, own in app.each(ENTRY) if (own.get("Type").text() or "STANDARD") == "STANDARD"]
        if access.boolean(default=True) is False and not entries and app.complete:
            yield Broken(
                path=access.path,
                message=f"nobody gets into {cluster.logical_id}: its creator has no rights, and there is no entry",
                fix="add an AWS::EKS::AccessEntry with AmazonEKSClusterAdminPolicy for who administers it",
            )


@rule(
    "HF350",
    title="Nodes for add-ons can hold all their pods",
    each=Eks,
    source="SageMaker developer guide, EKS prerequisites: maximum number of pods per instance type",
)
def room_for_pods(eks: Eks, deployment: Deployment) -> Iterator[Broken]:
    """
    A node takes as many pods as its network interfaces have addresses: five on ml.t3.medium, of which the system's own
    take most. Operators and their dependencies need a dozen and more.
    """
    plane = eks.control_plane
    if plane is None:
        return
    wanted = [addon.name for addon in plane.addons if "hyperpod" in addon.name or addon.name == "cert-manager"]
    small = page_fact("pods_per_node")
    groups = [group for group in deployment.cluster.instance_groups if group.instance_count]
    for group in groups:
        pods = [small[name] for name in group.types if name in small]
        if wanted and pods and min(pods) < PODS_OF_ADDONS and not _has_better(group, groups, small):
            yield refused(
                group.at("instance_type"),
                f"{', '.join(group.types)} with room for {min(pods)} pods, beside {', '.join(wanted)}",
                allowed="nodes for at least a dozen pods",
                fix="take ml.m5.xlarge or larger",
            )


def _has_better(group: InstanceGroup, groups: Sequence[InstanceGroup], small: Mapping[str, int]) -> bool:
    """Whether another group without accelerators has room for what add-ons run."""
    known = instance_types()
    return any(
        each is not group
        and any(name in known and not known[name].accelerators and name not in small for name in each.types)
        for each in groups
    )


def _is_private(value: object) -> bool:
    network = _network(value)
    return network is not None and any(network.subnet_of(ipaddress.IPv4Network(each)) for each in _SERVICE_BLOCKS)


def _never_from_outside(path: str, block: str) -> Broken:
    return refused(
        path,
        f"{block}, which no address on the internet is of",
        allowed="public addresses",
        fix="write the public addresses that people come from, or turn public access off",
    )


def _versions(item: EnvironmentFile | App) -> Iterator[tuple[str, str]]:
    if isinstance(item, EnvironmentFile):
        eks = item.data.get("eks")
        version = eks.get("kubernetes_version") if isinstance(eks, dict) else None
        if isinstance(version, str) and item.cloud == "aws":
            yield "eks.kubernetes_version", version
        return
    for _cluster, node in item.each(CLUSTER):
        version = node.get("Version").text()
        if isinstance(version, str):
            yield node.get("Version").path, version


def _supported(deployment: Deployment) -> list[str]:
    today = deployment.today or facts_date()
    return [version for version, each in kubernetes_support().items() if each.released <= today <= each.extended_until]


def _newest_standard(deployment: Deployment) -> str:
    from holdfast.catalog import kubernetes_versions

    today = deployment.today or facts_date()
    good = [version for version, each in kubernetes_support().items() if each.released <= today <= each.standard_until]
    taken = [version for version in good if version in kubernetes_versions()]
    return (taken or good or ["1.35"])[-1]


def _as_version(text: str) -> str:
    numbers = re.match(r"v?(\d+\.\d+(?:\.\d+)?)", text)
    return (
        f"write v{numbers[1]}{'.0' * (2 - numbers[1].count('.'))}-eksbuild.1, or leave it out"
        if numbers
        else "leave it out"
    )


def _cluster_of(app: App, node: Node) -> Resource | None:
    named = node.get("ClusterName")
    found = named.resource(CLUSTER)
    if found is None and isinstance(named.value, str):
        found = next((each for each, own in app.each(CLUSTER) if own.get("Name").value == named.value), None)
    return found


def _both_clusters(app: App, node: Node) -> Iterator[Resource]:
    """The HyperPod cluster, and the EKS cluster, that an add-on is for."""
    eks = _cluster_of(app, node)
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


def _access_policy(policy: Node, known: set[str]) -> Iterator[Broken]:
    arn = policy.get("PolicyArn")
    text = text_of(arn.value)
    if text is not None:
        before, _, name = text.rpartition("/")
        if ":iam::" in text:
            yield refused(
                arn.path,
                said(text),
                allowed="arn:aws:eks::aws:cluster-access-policy/NAME",
                fix="name an access policy of EKS, such as AmazonEKSClusterAdminPolicy",
            )
        elif "cluster-access-policy" not in before and "${" not in text:
            yield refused(
                arn.path,
                said(text),
                allowed="arn:aws:eks::aws:cluster-access-policy/NAME",
                fix=f"write arn:aws:eks::aws:cluster-access-policy/{name}",
            )
        elif name not in known and "${" not in name and (meant := closest(name, known)):
            yield refused(arn.path, name, allowed=", ".join(sorted(known)[:6]), fix=f"did you mean {meant}?")
    kind, spaces = policy.get("AccessScope", "Type").text(), policy.get("AccessScope", "Namespaces")
    if kind == "namespace" and not spaces.present:
        yield refused(
            f"{policy.path}.AccessScope",
            "a scope of type namespace without namespaces",
            allowed="at least one namespace",
            fix="add Namespaces, or write Type: cluster",
        )
    if kind == "cluster" and spaces.present:
        yield refused(
            f"{policy.path}.AccessScope",
            "namespaces in a scope of type cluster",
            allowed="none",
            fix="write Type: namespace, or remove Namespaces",
        )


def _network(value: object) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(value) if isinstance(value, str) and "/" in value else None
    except ValueError:
        return None


def _vpcs(app: App, node: Node) -> list[Resource]:
    subnets = [
        entry.resource("AWS::EC2::Subnet") for entry in node.get("ResourcesVpcConfig", "SubnetIds").items() or ()
    ]
    found = [app.node(each).get("VpcId").resource("AWS::EC2::VPC") for each in subnets if each is not None]
    return list(dict.fromkeys(each for each in found if each is not None))


def _blocks(app: App, vpc: Resource) -> list[ipaddress.IPv4Network]:
    texts = [app.node(vpc).get("CidrBlock").value]
    texts += [
        app.node(each).get("CidrBlock").value
        for each in app.values.linked(["AWS::EC2::VPCCidrBlock"], ["VpcId"], vpc).found
    ]
    return [found for text in texts if (found := _network(text)) is not None]
