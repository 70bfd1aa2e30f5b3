"""
Sessions of execution roles for instance metadata.

Source: EC2 user guide, "Retrieve security credentials from instance metadata": members, and renewal at least five
minutes before expiry.
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
    """One session per role, renewed before it expires. Thread-safe."""

    def __init__(self, *, sts: Any) -> None:
        self._sts = sts
        self._lock = threading.Lock()
        self._kept: dict[str, dict[str, Any]] = {}

    def document(self, role: str) -> str:
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
        """Drop all sessions: a restarted embedded AWS may not have the latest."""
        with self._lock:
            self._kept.clear()
