"""One event of CloudFormation about one release: the chart is had and verified, then helm runs; the outcome is told."""

import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ._archive import read_chart, verify, write_chart
from ._helm import Helm, HelmError, Release

NEVER_INSTALLED = "never-installed"
"""Ends the physical id of a release whose creation left nothing behind: deleting it needs no cluster."""

NO_KIND = "no matches for kind"
"""Part of helm's error for an object whose kind Kubernetes lacks; it has installed nothing then."""
PAUSE_S = 15
MARGIN_S = 60
"""Of the function's time, for the answer."""

OpenArchive = Callable[[Mapping[str, str]], AbstractContextManager[IO[bytes]]]
"""Opens an archive: ``{"Url": ...}`` or ``{"Bucket": ..., "Key": ...}``."""
Connect = Callable[[Path], Helm]
"""Helm with access to the cluster; the folder is for its files."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What CloudFormation is told."""

    physical_id: str
    reason: str | None = None
    """Default: none, it worked."""


def apply(
    event: Mapping[str, Any], *, open_archive: OpenArchive, connect: Connect, left_s: Callable[[], float]
) -> Outcome:
    """Do what the event asks for. Whatever goes wrong is in the outcome, because CloudFormation waits for an answer."""
    try:
        properties = event["ResourceProperties"]
        release = Release(name=properties["Release"], namespace=properties["Namespace"])
        physical_id = f"{release.namespace}/{release.name}"
    except (KeyError, TypeError) as error:
        return Outcome(physical_id=event.get("PhysicalResourceId", NEVER_INSTALLED), reason=f"no property {error}")
    known_id: str = event.get("PhysicalResourceId", f"{physical_id}/{NEVER_INSTALLED}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            if event["RequestType"] == "Delete":
                if not known_id.endswith(NEVER_INSTALLED):
                    connect(Path(folder)).uninstall(release)
                return Outcome(physical_id=known_id)
            chart = _chart(properties, Path(folder), open_archive)
            values = Path(folder) / "values.json"
            values.write_text(properties["Values"])
            helm = connect(Path(folder))
            try:
                while not _installed(helm, release, properties, chart, values, last=left_s() < MARGIN_S + PAUSE_S):
                    time.sleep(PAUSE_S)
            except HelmError:
                if event["RequestType"] == "Create" and helm.status(release) is not None:
                    known_id = physical_id
                raise
            return Outcome(physical_id=physical_id)
    except Exception as error:  # noqa: BLE001 - an exception that is not told leaves the stack waiting for an hour
        return Outcome(physical_id=known_id, reason=f"{physical_id}: {error or type(error).__name__}")


def _installed(
    helm: Helm, release: Release, properties: Mapping[str, Any], chart: Path, values: Path, *, last: bool
) -> bool:
    """Install; False: the release awaits kinds that Kubernetes lacks, and this is not the last try."""
    try:
        helm.install(release, chart=chart, values=values, wait=properties["Wait"] == "true")
    except HelmError as error:
        if last or properties.get("AwaitKinds") != "true" or NO_KIND not in str(error):
            raise
        return False
    return True


def _chart(properties: Mapping[str, Any], folder: Path, open_archive: OpenArchive) -> Path:
    path = properties["ChartPath"]
    with open_archive(properties["Archive"]) as archive:
        files = read_chart(archive, path)
    verify(files, path=path, expected_sha256=properties["TreeSha256"])
    chart = folder / "chart"
    write_chart(files, chart)
    return chart
