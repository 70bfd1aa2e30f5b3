"""What nodes and functions find out about things that were not known, or not there, when the cluster was made."""

import json
from pathlib import Path
from typing import Any

from holdfast_constructs.helm_installer.handler import named_cluster
from holdfast_lifecycle.model import mounts


def mount(group: str, path: str) -> dict[str, str]:
    return {
        "instance_group": group,
        "type": "openzfs",
        "dns_name": "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com",
        "mount_path": path,
    }


def test_a_group_that_was_added_later_has_its_mounts_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mounts.json").write_text(json.dumps([mount("head", "/home")]))
    (tmp_path / "mounts.workers.json").write_text(json.dumps([mount("workers", "/work")]))

    found = {group: [each.path for each in mounts(tmp_path, instance_group=group)] for group in ("head", "workers")}

    assert found == {"head": ["/home"], "workers": ["/work"]}


class Session:
    """Answers as EKS does."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def client(self, service: str) -> "Session":
        assert service == "eks"
        return self

    def describe_cluster(self, *, name: str) -> dict[str, Any]:
        self.asked.append(name)
        return {"cluster": {"endpoint": "https://there", "certificateAuthority": {"data": "Y2VydA=="}}}


def test_eks_is_asked_for_what_nobody_said_of_a_cluster() -> None:
    session = Session()

    found = named_cluster({"CLUSTER_NAME": "platform"}, session)  # type: ignore[arg-type]

    assert (found.name, found.endpoint, found.certificate_authority) == ("platform", "https://there", "Y2VydA==")
    assert session.asked == ["platform"]


def test_eks_is_not_asked_for_what_is_said() -> None:
    session = Session()
    said = {"CLUSTER_NAME": "own", "CLUSTER_ENDPOINT": "https://own", "CLUSTER_CERTIFICATE_AUTHORITY": "b3du"}

    found = named_cluster(said, session)  # type: ignore[arg-type]

    assert (found.endpoint, session.asked) == ("https://own", [])
