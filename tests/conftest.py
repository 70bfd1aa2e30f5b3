"""What every test shares: a clean environment, and skips that say what is missing."""

import gc
import os
import shutil
import signal
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import pytest
import sweeping
from hypothesis import settings
from xdist.workermanage import NodeManager

if TYPE_CHECKING:
    from holdfast.localcloud.kubernetes.binaries import Binaries

# A busy machine is no mistake of what is tested.
settings.register_profile("some", deadline=None, max_examples=50)
settings.register_profile("many", deadline=None, max_examples=300)

# The CDK, moto and botocore are half a million objects, through which Python would go again at every few thousand new
# ones: a tenth of all that the tests cost.
gc.set_threshold(20_000, 20, 10)

KUBERNETES = os.environ.get("HOLDFAST_KUBERNETES", "")
"""The binaries that whoever runs the tests has named; empty for those of the cache."""

SLURM_PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "mariadbd", "munged")


# A worker hears of the end after 5 s and has 10 s more for what its fixtures clear away; killed sooner, it leaves that.
NodeManager.EXIT_TIMEOUT = 20


def pytest_configure(config: pytest.Config) -> None:
    """SIGTERM ends tests as Ctrl-C does: their fixtures clear away what they made."""
    settings.load_profile("many" if config.getoption("--e2e") else "some")
    if _is_worker(config):
        # xdist ends its workers by SIGINT, which a shell's background job ignores, and which may come a second time.
        signal.signal(signal.SIGINT, _interrupted_once)
        signal.signal(signal.SIGTERM, _interrupted_once)
    else:
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--e2e", action="store_true", help="also run what takes long: the whole product, and more cases of all else"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reasons = {
        "root": None if os.geteuid() == 0 else "needs root: namespaces and mounts",
        "slurm": _missing_slurm(),
        "kubernetes": _missing_binaries(items),
        "e2e": None if config.getoption("--e2e") else "takes long; run with --e2e",
    }
    gc.collect()
    gc.freeze()
    for item in items:
        for marker, reason in reasons.items():
            if reason is not None and _marked(item, marker):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def swept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What tests started does not outlive this process, also when it is killed or interrupted in a fixture."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():  # what is removed is told to the user
        sweeping.watch(tmp_path_factory.getbasetemp(), controlled=_is_worker(request.config))


@pytest.fixture(scope="module", autouse=True)
def frozen_between_files() -> None:
    """Keep objects of earlier files from the collector and from searches through all objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_aws_environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    No test may reach an account: credentials are false and the machine's AWS configuration is out of sight.

    EKS clusters are records, except in tests that are marked ``kubernetes``.
    """
    for name in list(os.environ):
        if name.startswith(("AWS_", "CDK_", "HOLDFAST_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOLDFAST_TOKEN", "of a test")  # else launchers make one in the home directory
    monkeypatch.setenv("HOLDFAST_KUBERNETES", KUBERNETES if _marked(request.node, "kubernetes") else "records")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)


@pytest.fixture(scope="session")
def binaries() -> "Binaries":
    """The binaries of Kubernetes, for tests that are marked ``kubernetes``."""
    from holdfast.localcloud.kubernetes.binaries import find_binaries

    found = find_binaries({**os.environ, "HOLDFAST_KUBERNETES": KUBERNETES})
    assert found is not None, "mark the test with kubernetes: it is skipped where there are no binaries"
    return found


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's root folder."""
    return Path(__file__).parents[1]


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _interrupted_once(number: int, frame: FrameType | None) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: None)
    signal.default_int_handler(number, frame)


def _missing_slurm() -> str | None:
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    missing = [program for program in SLURM_PROGRAMS if shutil.which(program, path=path) is None]
    return f"needs {', '.join(missing)}" if missing else None


def _missing_binaries(items: list[pytest.Item]) -> str | None:
    if not any(_marked(item, "kubernetes") for item in items):
        return None
    from holdfast.localcloud.kubernetes.binaries import BinariesError, find_binaries

    try:
        found = find_binaries(os.environ)
    except BinariesError as error:
        return str(error)
    return None if found else "needs the binaries of Kubernetes; make them with: holdfast kubernetes build"


def _marked(item: pytest.Item, marker: str) -> bool:
    return item.get_closest_marker(marker) is not None
