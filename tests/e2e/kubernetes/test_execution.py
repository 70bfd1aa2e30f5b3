"""Commands in containers by the API server of a local EKS, as ``holdfast scale`` asks launchers in pods."""

import base64
import json
from collections.abc import Callable

import pytest
from kubernetes_http import Api
from kubernetes_things import STAYS, pod, pods_path, wait_ready
from local_eks import LocalEks, Person

from holdfast.cli.kubernetes import Finished, execute
from holdfast_common import KubernetesClient, KubernetesError

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes, pytest.mark.root]


@pytest.fixture
def client(local_eks: LocalEks) -> Callable[[Person], KubernetesClient]:
    """The API server as somebody with a token of ``aws eks get-token`` sees it."""
    cluster = local_eks.aws("eks").describe_cluster(name=local_eks.eks_cluster)["cluster"]
    authority = base64.b64decode(cluster["certificateAuthority"]["data"]).decode()

    def made(who: Person) -> KubernetesClient:
        told = json.loads(who.run("aws", "eks", "get-token", "--cluster-name", local_eks.eks_cluster))
        return KubernetesClient(endpoint=cluster["endpoint"], authority=authority, token=told["status"]["token"])

    return made


def test_words_of_a_command_reach_one_container_and_its_output_and_code_come_back(
    client: Callable[[Person], KubernetesClient],
    local_eks: LocalEks,
    api: Api,
    namespace: str,
    admin: Person,
    viewer: Person,
) -> None:
    two = pod("two", image=local_eks.image)
    two["spec"]["containers"].append(
        {"name": "other", "image": local_eks.image, "command": [*STAYS], "env": [{"name": "WHO", "value": "other"}]}
    )
    api.post(pods_path(namespace), two)
    wait_ready(api, namespace, "two")
    administrator = client(admin)

    def run(*argv: str, who: KubernetesClient = administrator, container: str = "other") -> Finished:
        return execute(who, namespace=namespace, pod="two", container=container, argv=argv)

    words = ["a b", "$(id)", "&c=d", "ü", ""]
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    assert json.loads(run("python3", "-c", code, *words).stdout) == words
    assert run("printenv", "WHO") == Finished(exit_code=0, stdout="other\n", stderr="")
    assert run("printenv", "WHO", container="main").exit_code == 1
    assert run("sh", "-c", "echo told >&2; exit 7") == Finished(exit_code=7, stdout="", stderr="told\n")
    assert len(run("head", "-c", "300000", "/dev/zero").stdout) == 300_000
    for argv, container, who, code_ in (
        (["no-such-program"], "other", administrator, None),
        (["true"], "third", administrator, 400),
        (["true"], "other", client(viewer), 403),
    ):
        with pytest.raises(KubernetesError) as caught:
            run(*argv, who=who, container=container)
        assert code_ in (None, caught.value.code), caught.value
