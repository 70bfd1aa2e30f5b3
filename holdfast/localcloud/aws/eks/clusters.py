"""EKS clusters as records, with the checks that other operations need."""

import copy
import secrets
import threading
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import Record, RecordStore, now
from holdfast.localcloud.aws.eks import errors

CREATOR = "creator"
"""Creator of the cluster, kept until EKS makes an access entry of it; not in the API."""
PRIVATE = ("awaits", CREATOR, "runs")
"""
Of a record's content, for this service alone: the status that it keeps until its control plane is ready (empty
afterwards), its creator, and the version of Kubernetes that runs.
"""


class EksClusters:
    """Clusters of one account and region, behind one lock that callers hold, except for `check_role`."""

    def __init__(self, *, client: ClientFactory, account: str, region: str) -> None:
        self.account, self.region = account, region
        self.lock = threading.RLock()
        self.shelf = RecordStore(lambda name: errors.missing(f"No cluster found for name: {name}."))
        self.updates: dict[str, dict[str, Any]] = {}
        self._client = client

    def shown(self, name: str) -> dict[str, Any]:
        record = self.shelf.get(name)
        reported = {key: value for key, value in record.content.items() if key not in PRIVATE}
        return {**copy.deepcopy(reported), "status": self.status(record)}

    def status(self, record: Record) -> str:
        """Return the operation in progress, or ACTIVE; a real cluster reports itself when it is ready."""
        if record.leaving:
            return record.doing
        return record.content.get("awaits") or record.status(settled="ACTIVE")

    def is_real(self, record: Record) -> bool:
        """Return True if it has, or will have, a control plane that runs."""
        return bool(record.content.get("awaits") or record.content.get("runs"))

    def runs(self, name: str) -> str:
        """Return the Kubernetes version that runs for a cluster; "" for a record."""
        with self.lock:
            found = self.shelf.find(name)
            return str(found.content.get("runs") or "") if found else ""

    def refuse_taken(self, name: str) -> None:
        if self.shelf.find(name) is not None:
            raise errors.in_use(f"Cluster already exists with name: {name}")

    def active(self, name: str) -> Record:
        record = self.shelf.get(name)
        status = self.status(record)
        if status != "ACTIVE":
            raise errors.in_use(f"Cluster {name} is not in ACTIVE state but in {status}")
        return record

    def check_role(self, arn: str) -> None:
        try:
            found = self._client("iam").get_role(RoleName=arn.rsplit("/", 1)[-1])["Role"]["Arn"]
        except ClientError:
            found = ""
        if found != arn:
            raise errors.invalid_parameter(
                f"Role with arn: {arn}, could not be assumed because it does not exist or the trusted entity is not "
                "correct"
            )

    def update(self, kind: str, parameters: dict[str, str]) -> dict[str, Any]:
        """Record a new update; DescribeUpdate shows it as finished."""
        identity = f"{secrets.token_hex(4)}-{secrets.token_hex(2)}-4000-8000-{secrets.token_hex(6)}"
        listed = [{"type": key, "value": value} for key, value in parameters.items()]
        update = {"id": identity, "type": kind, "params": listed, "createdAt": now(), "errors": []}
        self.updates[identity] = {**update, "status": "Successful"}
        return {**update, "status": "InProgress"}

    def arn(self, kind: str, path: str) -> str:
        return f"arn:aws:eks:{self.region}:{self.account}:{kind}/{path}"
