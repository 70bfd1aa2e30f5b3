"""The command of the workflows makes a release whose parts belong together."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from distributions import distributions, settings

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]
DEADLINE_S = 3500


def test_a_release_has_all_wheels_their_sums_and_an_sbom(tmp_path: Path, repository: Path) -> None:
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", tmp_path / "asked", "idna"],
        capture_output=True, text=True, timeout=DEADLINE_S,
    )  # fmt: skip
    if asked.returncode:
        pytest.skip("needs a package index, as pip's settings name one")
    version, folder = settings()["project"]["version"], tmp_path / "dist"

    done = subprocess.run(
        [sys.executable, "scripts/release.py", folder, "--tag", f"v{version}"],
        cwd=repository, capture_output=True, text=True, timeout=DEADLINE_S,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert "signature: skipped" in done.stdout
    assert len([*folder.glob(f"holdfast*-{version}-*.whl")]) == len(distributions())
    sums = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert sums == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "SHA256SUMS"
    }
    named = {each["name"] for each in json.loads((folder / "SBOM.json").read_text())["components"]}
    assert {"aws-cdk-lib", "pydantic", *distributions()} <= named
