"""A pod of an associated service account acts with its role, by AWS's own SDK; a pod of another one with none."""

import json
import secrets
from collections.abc import Iterator

import pytest
from kubernetes_http import Api
from kubernetes_things import pod, pods_path, wait_phase
from local_eks import LocalEks, eventually_true

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes, pytest.mark.root]

WHO = "import boto3; print(boto3.client('sts').get_caller_identity()['Arn'])"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
    ],
}


@pytest.fixture
def role(local_eks: LocalEks) -> Iterator[str]:
    iam, name = local_eks.aws("iam"), f"pod-{secrets.token_hex(3)}"
    yield iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
    iam.delete_role(RoleName=name)


def asked(name: str, *, image: str) -> dict[str, object]:
    region = {"name": "AWS_DEFAULT_REGION", "value": "us-west-2"}  # which only a pod with a role is told
    return pod(name, image=image, command=("python", "-c", WHO), container={"env": [region]})


def test_a_pod_acts_with_the_role_of_its_service_account(
    role: str, local_eks: LocalEks, api: Api, namespace: str
) -> None:
    eks = local_eks.aws("eks")
    made = eks.create_pod_identity_association(
        clusterName=local_eks.eks_cluster, namespace=namespace, serviceAccount="default", roleArn=role
    )["association"]
    try:
        api.post(pods_path(namespace), asked("known", image=local_eks.image))
        wait_phase(api, namespace, "known", "Succeeded")
        said = api.text(pods_path(namespace, "known") + "/log")
    finally:
        eks.delete_pod_identity_association(clusterName=local_eks.eks_cluster, associationId=made["associationId"])
    session = f"arn:aws:sts::123456789012:assumed-role/{role.rpartition('/')[2]}/eks-"
    assert said.startswith(session), said


def test_a_pod_without_an_association_has_no_credentials(local_eks: LocalEks, api: Api, namespace: str) -> None:
    api.post(pods_path(namespace), asked("nobody", image=local_eks.image))
    wait_phase(api, namespace, "nobody", "Failed")
    path = pods_path(namespace, "nobody") + "/log"
    eventually_true(lambda: "NoCredentialsError" in api.text(path), "the SDK's word", within_s=20)
