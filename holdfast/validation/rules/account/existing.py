"""92x: existing resources that must fit, by the account."""

from collections.abc import Iterator

from holdfast.catalog import kubernetes_versions
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.model import Deployment, EksFact, Existing, ExistingFacts, UnresolvedError

EKS = "SageMaker developer guide, 'Getting started with Amazon EKS support in SageMaker HyperPod'"
CREATE = "SageMaker developer guide, 'Creating a SageMaker HyperPod cluster' (EKS, AWS CLI)"
ROLE = "SageMaker developer guide, 'IAM role for SageMaker HyperPod'"
MODES = ("API", "API_AND_CONFIG_MAP")
SAGEMAKER = "sagemaker.amazonaws.com"


def _facts(deployment: Deployment) -> ExistingFacts | None:
    return None if deployment.facts is None else deployment.facts.existing


@rule(
    "HF920",
    title="Existing buckets are in the account and the region",
    each=Existing,
    source="S3 API reference, HeadBucket; FSx for Lustre user guide, 'Linking your file system to an Amazon S3 bucket'",
    suppressible=True,
)
def buckets_are_ours(existing: Existing, deployment: Deployment) -> Iterator[Broken]:
    """
    A name of a bucket is taken by one account of all. One of another account is read only as that account's bucket
    policy allows, which is not visible here: suppress this with a reason once its owner has allowed it.
    """
    if not existing.buckets:
        return
    facts = _facts(deployment)
    if facts is None:
        return
    for name in dict.fromkeys(each.name for each in existing.buckets):
        fact = facts.buckets.get(name)
        if fact is None:
            continue
        wrong = {"missing": "which does not exist", "foreign": "which is another account's, or closed to who asked"}
        if fact.state in wrong:
            yield refused(
                existing.at("buckets"),
                f"bucket {name}, {wrong[fact.state]}",
                allowed=f"a bucket of account {deployment.account}",
                fix="correct the name, or have its owner let this account in",
            )
        elif fact.region is not None and fact.region != deployment.region:
            yield refused(
                existing.at("buckets"),
                f"bucket {name} in {fact.region}",
                allowed=f"one in {deployment.region}",
                fix="take one of the region; across regions every read costs, and FSx exports nothing",
            )


@rule("HF921", title="The existing EKS cluster meets HyperPod's requirements", each=Existing, source=f"{EKS}; {CREATE}")
def eks_cluster_fits(existing: Existing, deployment: Deployment) -> Iterator[Broken]:
    """
    It is active, of a Kubernetes version that HyperPod accepts, and lets in by access entries: authentication mode API
    or API_AND_CONFIG_MAP. Nodes are in its VPC. What this stack installs is not installed already.
    """
    if existing.eks_cluster is None:
        return
    facts = _facts(deployment)
    if facts is None:
        return
    found, name = facts.eks_clusters.get(existing.eks_cluster), existing.eks_cluster
    where = "eks.existing.cluster"
    if found is None:
        yield refused(
            where,
            f"{name}, which does not exist",
            allowed="an EKS cluster of account and region",
            fix="correct the name",
        )
        return
    for given, allowed, fix in _misfits(found, facts, existing):
        yield refused(where, f"{name} {given}", allowed=allowed, fix=fix)


def _misfits(found: EksFact, facts: ExistingFacts, existing: Existing) -> Iterator[tuple[str, str, str]]:
    if found.status != "ACTIVE":
        yield f"in state {found.status}", "one that is ACTIVE", "wait, or repair it"
    if found.version not in kubernetes_versions():
        versions = ", ".join(kubernetes_versions())
        yield f"of version {found.version}", f"one of {versions}, which HyperPod accepts", "upgrade it first"
    if found.authentication_mode not in MODES:
        mode = f"with authentication mode {found.authentication_mode}"
        yield mode, " or ".join(MODES), "have its owner turn access entries on: aws eks update-cluster-config"
    strange = sorted({vpc for vpc in facts.vpc_of_subnets.values() if found.vpc_id and vpc != found.vpc_id})
    if strange:
        vpcs = f"in {found.vpc_id}, and nodes in {', '.join(strange)}"
        yield vpcs, "nodes in the VPC of the EKS cluster", "name subnets of its VPC in network.existing"
    twice = sorted(set(existing.addons) & found.addons)
    if twice:
        yield (
            f"with add-on {', '.join(twice)}",
            "add-ons that are installed once",
            "turn the setting off that installs it",
        )


@rule(
    "HF922", title="Existing roles have the permissions that nodes need", each=Existing, source=ROLE, suppressible=True
)
def roles_fit(existing: Existing, deployment: Deployment) -> Iterator[Broken]:
    """
    Nothing is added to a role that is there already. SageMaker has to be trusted by it, and its policies, with its
    permissions boundary, have to let nodes find their network and read their scripts: IAM's policy simulator says.
    """
    if not existing.roles:
        return
    facts = _facts(deployment)
    if facts is None:
        return
    for arn in existing.roles:
        role = facts.roles.get(arn)
        wrong = None
        if role is None:
            wrong, fix = "which does not exist", "correct the ARN"
        elif SAGEMAKER not in role.trusted_services:
            wrong, fix = f"which does not trust {SAGEMAKER}", "have its owner add the service to its trust policy"
        elif role.denied is None:
            raise UnresolvedError("cluster.execution_role_arn")
        elif role.denied:
            wrong, fix = f"which may not do {', '.join(role.denied)}", "have its owner allow it"
        if wrong is not None:
            yield refused(
                "cluster.execution_role_arn",
                f"{arn}, {wrong}",
                allowed="a role that SageMaker may assume and that has what nodes need",
                fix=fix,
            )
