"""Region and endpoints of AWS: environment, a file of the node, instance metadata."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

FILE = Path("/etc/holdfast/aws")
"""NAME=VALUE lines; nodes of the local cloud have it, since a service's environment is empty."""


@dataclass(frozen=True)
class Settings:
    variables: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def read(*, file: Path = FILE, environment: Optional[Mapping[str, str]] = None) -> "Settings":
        """Merge: the process's environment overrides the file."""
        found = dict(_pairs(file))
        found.update(os.environ if environment is None else environment)
        return Settings(variables=found)

    def get(self, name: str, otherwise: str = "") -> str:
        return self.variables.get(name) or otherwise

    @property
    def region(self) -> str:
        """Empty where only instance metadata can tell."""
        return self.get("AWS_REGION") or self.get("AWS_DEFAULT_REGION")

    def endpoint(self, *, service_id: str, host_prefix: str, region: str) -> str:
        """
        Address of a service: its own variable, the one of all services, AWS's.

        Args:
            service_id: As in ``AWS_ENDPOINT_URL_<service_id>``: upper case, underscores.
            host_prefix: Of AWS's host, such as ``logs``.
        """
        if self.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").lower() != "true":
            given = self.get(f"AWS_ENDPOINT_URL_{service_id}") or self.get("AWS_ENDPOINT_URL")
            if given:
                return given.rstrip("/")
        return f"https://{host_prefix}.{region}.{_suffix(region)}"


def _suffix(region: str) -> str:
    """AWS's domain, by partition (botocore's endpoints.json)."""
    if region.startswith("cn-"):
        return "amazonaws.com.cn"
    if region.startswith("us-iso-"):
        return "c2s.ic.gov"
    if region.startswith("us-isob-"):
        return "sc2s.sgov.gov"
    return "amazonaws.com"


def _pairs(file: Path) -> "list[tuple[str, str]]":
    try:
        lines = file.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [(name.strip(), value.strip()) for name, equals, value in (line.partition("=") for line in lines) if equals]
