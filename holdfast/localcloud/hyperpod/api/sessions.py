"""
Sessions of the nodes' execution roles, whose credentials instances find in their metadata.

Source: EC2 user guide, "Retrieve security credentials from instance metadata": what is answered and its members, and
that new ones are there at least five minutes before the old ones end. On HyperPod the session is SageMaker's.
"""

import datetime
import json
import threading
from typing import Any

SESSION = "SageMaker"
LASTS_S = 3600
RENEWED_BEFORE_S = 1200
"""SDKs ask for new ones in the last fifteen minutes."""


class RoleSessions:
    """One session per role, renewed before it ends. Thread-safe."""

    def __init__(self, *, sts: Any) -> None:
        self._sts = sts
        self._lock = threading.Lock()
        self._kept: dict[str, dict[str, Any]] = {}

    def document(self, role: str) -> str:
        """What instance metadata says of a role's credentials. Raises: what boto3 raises when there are none."""
        now = datetime.datetime.now(datetime.UTC)
        with self._lock:
            known = self._kept.get(role)
            if known is None or known["Expiration"] - now < datetime.timedelta(seconds=RENEWED_BEFORE_S):
                made = self._sts.assume_role(RoleArn=role, RoleSessionName=SESSION, DurationSeconds=LASTS_S)
                known = self._kept[role] = {**made["Credentials"], "LastUpdated": now}
        return json.dumps(
            {
                "Code": "Success",
                "LastUpdated": f"{known['LastUpdated']:%Y-%m-%dT%H:%M:%SZ}",
                "Type": "AWS-HMAC",
                "AccessKeyId": known["AccessKeyId"],
                "SecretAccessKey": known["SecretAccessKey"],
                "Token": known["SessionToken"],
                "Expiration": f"{known['Expiration']:%Y-%m-%dT%H:%M:%SZ}",
            },
            indent=2,
        )

    def forget(self) -> None:
        """The embedded AWS went away: it may come back without the latest sessions."""
        with self._lock:
            self._kept.clear()
