"""Unmodified helm against a local EKS: 3.17, 4.1 and 4.2, as they are packed with the kubectl of the CDK's layers.

What each command has to print is said by helm's pages and source (helm.sh/docs/helm and helm/helm, read 2026-11-23).
"""

import dataclasses
import json
import re
from pathlib import Path

import kubernetes_clients
import pytest
from local_eks import LocalEks, Person

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes, pytest.mark.root]

CHART = Path(__file__).parents[2] / "cases" / "charts-small" / "greeting"
LAYERS = {"3.17": "1.32", "4.1": "1.34", "4.2": "1.36"}
"""A version of helm -> the Kubernetes version whose layer holds it."""


@pytest.fixture(params=list(LAYERS))
def user(request: pytest.FixtureRequest, admin: Person) -> Person:
    one = dataclasses.replace(admin, minor=LAYERS[request.param])
    assert one.helm("version", "--template={{.Version}}").startswith(f"v{request.param}.")
    return one


def revisions(user: Person, namespace: str, release: str) -> list[tuple[int, str, str]]:
    listed = json.loads(user.helm("history", release, "-n", namespace, "-o", "json"))
    return [(one["revision"], one["status"], one["description"]) for one in listed]


def text_in_pods(user: Person, namespace: str) -> str:
    return user.kubectl("exec", "-n", namespace, "deployment/greeting", "--", "printenv", "TEXT").strip()


def test_a_release_is_installed_upgraded_rolled_back_and_removed(
    user: Person, local_eks: LocalEks, namespace: str
) -> None:
    here = ("-n", namespace)
    setting = ("--set", f"image={local_eks.image}", "--wait", "--timeout", "90s")

    installed = user.helm("install", "greeting", str(CHART), *here, *setting)
    first = text_in_pods(user, namespace)
    upgraded = user.helm("upgrade", "greeting", str(CHART), *here, *setting, "--set", "text=goodbye")
    second = text_in_pods(user, namespace)
    listed = json.loads(user.helm("list", *here, "-o", "json"))
    values = json.loads(user.helm("get", "values", "greeting", *here, "-o", "json"))
    back = user.helm("rollback", "greeting", "1", *here, "--wait", "--timeout", "90s")
    third = text_in_pods(user, namespace)
    history = revisions(user, namespace, "greeting")
    removed = user.helm("uninstall", "greeting", *here, "--wait", "--timeout", "90s")

    assert "NAME: greeting\n" in installed
    assert f"NAMESPACE: {namespace}\n" in installed
    assert "STATUS: deployed\nREVISION: 1\n" in installed
    assert upgraded.startswith('Release "greeting" has been upgraded. Happy Helming!\n')
    assert "STATUS: deployed\nREVISION: 2\n" in upgraded
    assert [(one["name"], one["revision"], one["status"], one["chart"]) for one in listed] == [
        ("greeting", "2", "deployed", "greeting-1.0.0")
    ]
    assert values == {"image": local_eks.image, "text": "goodbye"}
    assert back == "Rollback was a success! Happy Helming!\n"
    assert (first, second, third) == ("hello", "goodbye", "hello")
    assert history == [
        (1, "superseded", "Install complete"),
        (2, "superseded", "Upgrade complete"),
        (3, "deployed", "Rollback to 1"),
    ]
    assert removed == 'release "greeting" uninstalled\n'
    assert json.loads(user.helm("list", *here, "-o", "json")) == []
    assert user.get(*here, "deployments,configmaps", "-l", "app.kubernetes.io/managed-by=Helm")["items"] == []


def test_an_upgrade_that_fails_is_rolled_back_when_that_is_asked_for(
    user: Person, local_eks: LocalEks, namespace: str
) -> None:
    here = ("-n", namespace)
    image = ("--set", f"image={local_eks.image}")
    user.helm("install", "greeting", str(CHART), *here, *image, "--wait", "--timeout", "90s")
    # helm 4 renamed the flag (HIP-0024) and keeps the old name as deprecated
    failed = user.tried(
        *(
            str(kubernetes_clients.helm(user.minor)),
            "upgrade",
            "greeting",
            str(CHART),
            *here,
            *image,
            "--set",
            "command={false}",
        ),
        *("--atomic", "--timeout", "8s"),
    )

    assert failed.returncode == 1
    assert "UPGRADE FAILED" in failed.stderr
    assert text_in_pods(user, namespace) == "hello"
    assert [status for _, status, _ in revisions(user, namespace, "greeting")] == ["superseded", "failed", "deployed"]


def test_a_name_that_is_in_use_is_refused(user: Person, local_eks: LocalEks, namespace: str) -> None:
    install = ("install", "greeting", str(CHART), "-n", namespace, "--set", f"image={local_eks.image}")
    user.helm(*install)
    again = user.tried(str(kubernetes_clients.helm(user.minor)), *install)

    assert again.returncode == 1
    assert re.search(r"cannot re-?use a name that is still in use", again.stderr)
