"""EKS: who may have an access entry, what EKS sets by itself, and which roles pods may have."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from eks_lab import ACCOUNT, PODS, POLICY, EksLab

ROOT = f"arn:aws:iam::{ACCOUNT}:root"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EksLab]:
    made = EksLab(tmp_path_factory.mktemp("eks-access"))
    yield made
    made.stop()


def refusal(call: Any, **arguments: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    error = caught.value.response["Error"]
    return f"{error['Code']}: {error['Message']}"


def entry(lab: EksLab, principal: str, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = lab.client("eks").create_access_entry(clusterName="lab", principalArn=principal, **more)
    return made["accessEntry"]


@pytest.mark.parametrize(
    ("kind", "username", "groups"),
    [
        ("STANDARD", f"arn:aws:sts::{ACCOUNT}:assumed-role/standard/{{{{SessionName}}}}", []),
        ("EC2", "system:node:{{EC2PrivateDNSName}}", []),
        ("EC2_LINUX", "system:node:{{EC2PrivateDNSName}}", ["system:nodes"]),
        ("EC2_WINDOWS", "system:node:{{EC2PrivateDNSName}}", ["system:nodes", "eks:kube-proxy-windows"]),
        ("FARGATE_LINUX", "system:node:{{SessionName}}", ["system:nodes"]),
        ("HYBRID_LINUX", "system:node:{{SessionName}}", ["system:nodes"]),
        ("HYPERPOD_LINUX", "system:node:{{SessionName}}", ["system:nodes"]),
    ],
)
def test_eks_names_users_and_groups_by_the_type(lab: EksLab, kind: str, username: str, groups: list[str]) -> None:
    role = lab.role(kind.lower(), path="/teams/a/" if kind == "STANDARD" else "/")
    made = entry(lab, role, type=kind)

    assert (made["username"], made["kubernetesGroups"]) == (username, groups)
    assert f"access-entry/lab/role/{ACCOUNT}/{kind.lower()}/" in made["accessEntryArn"]


def test_an_iam_user_is_its_own_user(lab: EksLab) -> None:
    user = lab.client("iam").create_user(UserName="bob")["User"]["Arn"]
    assert entry(lab, user)["username"] == user


@pytest.mark.parametrize(
    ("principal", "kind"),
    [
        (f"arn:aws:iam::{ACCOUNT}:role/none", "STANDARD"),
        (f"arn:aws:iam::{ACCOUNT}:role/wrong/path/eks", "STANDARD"),
        (f"arn:aws:iam::{ACCOUNT}:user/none", "STANDARD"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/eks/mary", "STANDARD"),
        (f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/eks.amazonaws.com/eks", "STANDARD"),
        (f"arn:aws:iam::{ACCOUNT}:group/admins", "STANDARD"),
        ("*", "STANDARD"),
    ],
)
def test_rejects_a_principal_that_there_is_not(lab: EksLab, principal: str, kind: str) -> None:
    said = refusal(lab.client("eks").create_access_entry, clusterName="lab", principalArn=principal, type=kind)
    assert said == "InvalidParameterException: The specified principalArn is invalid: invalid principal."


def test_nodes_are_roles_of_the_clusters_account_and_others_may_be_of_any(lab: EksLab) -> None:
    other = "arn:aws:iam::999999999999:role/partner"
    said = refusal(lab.client("eks").create_access_entry, clusterName="lab", principalArn=other, type="EC2_LINUX")

    assert "role of the cluster's account" in said
    assert entry(lab, other)["principalArn"] == other


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"username": "system:admin"}, "The username must not begin with system:"),
        ({"username": "eks:x"}, "The username must not begin with eks:"),
        ({"username": "john{{SessionName}}"}, "must contain a colon before {{SessionName}}"),
        ({"username": "{{SessionNameRaw}}:john"}, "must contain a colon before {{SessionNameRaw}}"),
        (
            {"kubernetesGroups": ["ok", "system:masters"]},
            "The kubernetes group name system:masters is invalid, it cannot start with system:",
        ),
        ({"type": "HYPERPOD_LINUX", "kubernetesGroups": ["a"]}, "cannot be set for type HYPERPOD_LINUX"),
    ],
)
def test_rejects_names_that_are_kubernetes_own(lab: EksLab, given: dict[str, Any], words: str) -> None:
    where = {"clusterName": "lab", "principalArn": f"arn:aws:iam::{ACCOUNT}:role/eks"}
    assert words in refusal(lab.client("eks").create_access_entry, **where, **given)


def test_an_entry_is_changed_by_the_same_rules(lab: EksLab) -> None:
    role, eks = lab.role("changing"), lab.client("eks")
    entry(lab, role, username="team:{{SessionName}}")
    where = {"clusterName": "lab", "principalArn": role}

    assert "must not begin with aws:" in refusal(eks.update_access_entry, **where, username="aws:x")
    assert "cannot start with iam:" in refusal(eks.update_access_entry, **where, kubernetesGroups=["iam:x"])
    changed = eks.update_access_entry(**where, kubernetesGroups=["viewers"])["accessEntry"]
    assert (changed["username"], changed["kubernetesGroups"]) == ("team:{{SessionName}}", ["viewers"])


def test_awss_policies_are_listed_and_only_they_are_associated(lab: EksLab) -> None:
    role, eks = lab.role("associating"), lab.client("eks")
    entry(lab, role)
    pages = eks.get_paginator("list_access_policies").paginate(PaginationConfig={"PageSize": 7})
    listed = {each["name"]: each["arn"] for page in pages for each in page["accessPolicies"]}
    associate = {"clusterName": "lab", "principalArn": role}
    everywhere = {"type": "cluster"}

    assert listed["AmazonEKSViewPolicy"] == POLICY + "AmazonEKSViewPolicy"
    assert len(listed) > 30
    made = eks.associate_access_policy(**associate, policyArn=listed["AmazonEKSViewPolicy"], accessScope=everywhere)
    assert made["associatedAccessPolicy"]["accessScope"] == {"type": "cluster", "namespaces": []}
    for policy, scope, words in [
        ("AmazonEKSNoPolicy", everywhere, "ResourceNotFoundException"),
        ("AmazonEKSHybridPolicy", everywhere, "cannot be used with customer-managed roles"),
        ("AmazonEKSEditPolicy", {"type": "namespace"}, "namespaces are required"),
        ("AmazonEKSEditPolicy", {"type": "cluster", "namespaces": ["a"]}, "namespaces are required"),
    ]:
        said = refusal(eks.associate_access_policy, **associate, policyArn=POLICY + policy, accessScope=scope)
        assert words in said
    arn = "arn:aws:iam::aws:policy/AmazonEKSViewPolicy"
    said = refusal(eks.associate_access_policy, **associate, policyArn=arn, accessScope=everywhere)
    assert "format is not valid" in said


# -- who creates a cluster


def administrators(lab: EksLab, cluster: str) -> list[str]:
    policy = POLICY + "AmazonEKSClusterAdminPolicy"
    found: list[str] = lab.client("eks").list_access_entries(clusterName=cluster, associatedPolicyArn=policy)[
        "accessEntries"
    ]
    return found


def test_who_creates_a_cluster_administers_it(lab: EksLab) -> None:
    described = lab.cluster("by-owner")

    assert administrators(lab, "by-owner") == [ROOT]
    assert described["accessConfig"]["bootstrapClusterCreatorAdminPermissions"] is True
    assert "creator" not in described


def test_a_role_that_creates_a_cluster_administers_it(lab: EksLab) -> None:
    role = lab.role("creating", actions=("eks:*", "iam:PassRole"))
    lab.cluster("by-role", client=lab.client("eks", **lab.session(role).boto))
    assert administrators(lab, "by-role") == [role]


def test_nobody_can_say_that_somebody_else_creates_it(lab: EksLab) -> None:
    role = lab.role("pretending", actions=("eks:*", "iam:PassRole"))
    eks = lab.client("eks", **lab.session(role).boto)
    eks.meta.events.register(
        "before-call", lambda params, **_: params["headers"].update({"X-Holdfast-Principal": f"{ROOT[:-4]}role/eks"})
    )
    lab.cluster("by-liar", client=eks)
    assert administrators(lab, "by-liar") == [role]


def test_without_the_bootstrap_nobody_administers_it(lab: EksLab) -> None:
    assert administrators(lab, "lab") == []


def test_the_creator_gets_its_entry_when_the_mode_comes_to_know_them(lab: EksLab) -> None:
    lab.cluster("late", authenticationMode="CONFIG_MAP")
    eks = lab.client("eks")
    eks.update_cluster_config(name="late", accessConfig={"authenticationMode": "API_AND_CONFIG_MAP"})
    first = administrators(lab, "late")
    eks.delete_access_entry(clusterName="late", principalArn=ROOT)
    eks.get_waiter("cluster_active").wait(name="late", WaiterConfig={"Delay": 0.05})
    eks.update_cluster_config(name="late", accessConfig={"authenticationMode": "API"})

    assert first == [ROOT]
    assert administrators(lab, "late") == []


@pytest.mark.parametrize("with_role", [True, False])
def test_a_stack_creates_for_its_role_or_for_the_owner(lab: EksLab, with_role: bool) -> None:
    name = f"stack-{with_role}".lower()
    role = lab.role(name, trusted="cloudformation.amazonaws.com") if with_role else ""
    properties = {
        "Name": name,
        "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/eks",
        "AccessConfig": {"AuthenticationMode": "API"},
        "ResourcesVpcConfig": {"SubnetIds": lab.subnets},
    }
    cluster = {"Type": "AWS::EKS::Cluster", "Properties": properties}
    formation = lab.client("cloudformation")
    formation.create_stack(
        StackName=name,
        TemplateBody=json.dumps({"Resources": {"Cluster": cluster}}),
        **({"RoleARN": role} if role else {}),
    )
    formation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 0.1})
    assert administrators(lab, name) == [role or ROOT]


# -- pod identity associations


def test_a_role_that_does_not_trust_the_service_is_not_associated(lab: EksLab) -> None:
    where = {"clusterName": "lab", "namespace": "a", "serviceAccount": "b"}
    call = lab.client("eks").create_pod_identity_association

    said = refusal(call, **where, roleArn=f"arn:aws:iam::{ACCOUNT}:role/eks")
    assert said == "InvalidParameterException: Trust policy of the role provided is invalid"
    role = lab.role("trusting", trust=PODS)
    said = refusal(call, **where, roleArn=role, policy="{}")
    assert "disableSessionTags must be true" in said
    made = call(**where, roleArn=role, targetRoleArn=f"arn:aws:iam::{ACCOUNT}:role/eks")["association"]
    assert made["externalId"] == f"us-west-2/{ACCOUNT}/lab/a/b"
    where = {"clusterName": "lab", "associationId": made["associationId"]}
    said = refusal(lab.client("eks").update_pod_identity_association, **where, policy="{}")
    assert "disableSessionTags must be true" in said
