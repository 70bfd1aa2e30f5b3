"""What every test shares: a clean environment, and skips that say what is missing."""

import gc
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no mistake of what is tested.
settings.register_profile("by-work", deadline=None)
settings.load_profile("by-work")

# The CDK, moto and botocore are half a million objects, through which Python would go again at every few thousand new
# ones: a tenth of all that the tests cost.
gc.set_threshold(20_000, 20, 10)

SLURM_PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "mariadbd", "munged")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--e2e", action="store_true", help="also run the tests of the whole product (minutes)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reasons = {
        "root": None if os.geteuid() == 0 else "needs root: namespaces and mounts",
        "slurm": _missing_slurm(),
        "e2e": None if config.getoption("--e2e") else "the whole product; run with --e2e",
    }
    gc.collect()
    gc.freeze()
    for item in items:
        for marker, reason in reasons.items():
            if reason is not None and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def no_aws_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may reach an account: credentials are false and the machine's AWS configuration is out of sight."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "CDK_", "HOLDFAST_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOLDFAST_TOKEN", "of a test")  # else launchers make one in the home directory
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's root folder."""
    return Path(__file__).parents[1]


def _missing_slurm() -> str | None:
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    missing = [program for program in SLURM_PROGRAMS if shutil.which(program, path=path) is None]
    return f"needs {', '.join(missing)}" if missing else None
