"""
The product on Debian 13, on Debian's newest packages and on Ubuntu 24.04: other Pythons, another Slurm.

    make e2e PART=other-debian-trixie
    make e2e PART=other-debian-sid
    make e2e PART=other-debian-noble

Each root is kept in build/other-debian.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from other_debian import UBUNTU, UBUNTU_KEYRING, OtherDebian

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("HOLDFAST_OTHER_DEBIAN", ROOT / "build" / "other-debian"))
STAGES = {
    "make up": 1500.0,
    "make down": 120.0,
    "make test": 2400.0,
    "make up-eks": 1500.0,
    "make down again": 120.0,
}
"""Commands in their order, and what each may take in seconds."""

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.root,
    pytest.mark.timeout(max(STAGES.values()) + 60),
    pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="needs mmdebstrap"),
]


@pytest.fixture(scope="module", params=["trixie", "sid", "noble"], ids=lambda suite: f"other-debian-{suite}")
def debian(request: pytest.FixtureRequest) -> Iterator[OtherDebian]:
    if request.param in UBUNTU and not UBUNTU_KEYRING.is_file():
        pytest.skip(f"no keyring of Ubuntu at {UBUNTU_KEYRING}")
    made = OtherDebian(request.param, FOLDER)
    made.make()
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def commit() -> str:
    said = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30
    )
    return said.stdout.strip()


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_ends_well(debian: OtherDebian, commit: str, stage: str) -> None:
    debian.clone(ROOT, commit=commit)

    found = debian.run(f"{stage.removesuffix(' again')} -C holdfast", timeout_s=STAGES[stage])

    (debian.root.parent / f"{stage}.log").write_text(found.stdout)
    assert found.returncode == 0, found.stdout[-4000:]
    if stage.startswith("make down"):
        assert not [line for line in debian.processes() if "holdfast" in line or "slurm" in line]
