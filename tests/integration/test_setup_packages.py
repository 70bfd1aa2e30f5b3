"""What `make setup` downloads: said first, PyTorch without CUDA where no GPU is, and pip's own settings before ours."""

import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import venv
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import install_packages
from install_packages import CPU, SetupError, check_room, has_gpu, names_an_index, reason

pytestmark = pytest.mark.e2e

CALL = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from install_packages import install_torch
install_torch(files=[Path(sys.argv[2])], cpu_index=sys.argv[3], gpu=sys.argv[4] == "gpu", elsewhere=sys.argv[5:])
"""
VERSION = "from importlib.metadata import version; print(version('torch'), version('tiny'))"


class Index:
    """Wheels as PyPI and PyTorch serve them, on the loopback."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(SimpleHTTPRequestHandler):
            def log_request(self, *_: object) -> None:
                asked.append(self.path)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def wheel(folder: Path, name: str, version: str, *, needs: str = "") -> None:
    """An empty wheel, in a folder that a plain file server offers as a simple index."""
    folder.mkdir(parents=True, exist_ok=True)
    notes = f"{name}-{version}.dist-info"
    requires = f"Requires-Dist: {needs}\n" if needs else ""
    texts = {
        f"{name}/__init__.py": "",
        f"{notes}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        f"{notes}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*texts, f"{notes}/RECORD"))
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in {**texts, f"{notes}/RECORD": record}.items():
            archive.writestr(path, text)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    served = tmp_path / "served"
    wheel(served / "cpu" / "torch", "torch", "2.13.0+cpu", needs="tiny")
    wheel(served / "pypi" / "torch", "torch", "2.13.0", needs="tiny")
    wheel(served / "pypi" / "tiny", "tiny", "1.0")
    index = Index(served)
    yield index
    index.close()


Install = Callable[..., tuple[str, str]]


@pytest.fixture
def install(tmp_path: Path, index: Index, repository: Path) -> Install:
    """Installs into an environment of its own; what was said, and the versions of torch and of what it needs."""
    venv.create(tmp_path / "environment")
    python = tmp_path / "environment" / "bin" / "python"
    libraries = next((tmp_path / "environment" / "lib").glob("python*/site-packages"))
    (libraries / "pip").symlink_to(Path(sysconfig.get_path("purelib")) / "pip")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("# exact\ntorch==2.13.0\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}

    def install(*, gpu: bool = False, cpu_index: str = f"{index.address}/cpu", **settings: str) -> tuple[str, str]:
        words = [str(repository / "scripts"), str(requirements), cpu_index, "gpu" if gpu else "none"]
        words += ["--index-url", f"{index.address}/pypi"]
        environment = {
            **clean,
            "HOME": str(tmp_path),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_CACHE_DIR": "1",
            **settings,
        }
        said = ran([str(python), "-c", CALL, *words], environment)
        return said, ran([str(python), "-c", VERSION], environment).strip()

    return install


def ran(command: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_machine_without_a_gpu_gets_pytorch_without_cuda_and_all_else_from_pypi(install: Install) -> None:
    assert install() == ("installing PyTorch for CPUs: 200 MB to download\n", "2.13.0+cpu 1.0")


def test_a_machine_with_a_gpu_gets_cuda(install: Install, index: Index) -> None:
    assert install(gpu=True) == ("installing PyTorch with CUDA: 2700 MB to download\n", "2.13.0 1.0")
    assert not [path for path in index.asked if path.startswith("/cpu/")]


def test_where_pytorchs_index_is_out_of_reach_pypi_is_taken_and_its_size_said(install: Install) -> None:
    assert install(cpu_index="http://127.0.0.1:9/cpu") == (
        "installing PyTorch for CPUs: 200 MB to download\n"
        "http://127.0.0.1:9/cpu has no build for this machine or is unreachable: using PyPI\n"
        "installing PyTorch with CUDA: 2700 MB to download\n",
        "2.13.0 1.0",
    )


def test_pips_own_settings_win(install: Install, index: Index, tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "torch", "2.13.0+ours", needs="tiny")

    said, versions = install(PIP_FIND_LINKS=str(tmp_path / "wheels"))

    assert said == "installing PyTorch from pip's index: at most 2700 MB to download\n"
    assert versions == "2.13.0+ours 1.0"
    assert not [path for path in index.asked if path.startswith("/cpu/")]


def test_what_is_installed_is_not_replaced(install: Install, index: Index) -> None:
    install(gpu=True)

    assert install() == ("installing PyTorch\n", "2.13.0 1.0")
    assert not [path for path in index.asked if path.startswith("/cpu/")]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("", False),
        ("global.cert='/etc/ssl/index-url.crt'\n:env:.timeout='180'\n", False),
        ("global.cert='/x'\nglobal.extra-index-url='http://mirror/simple'\n", True),
        ("install.find-links='/opt/wheels'\n", True),
        (":env:.index-url='http://mirror/simple'\n", True),
        ("global.no-index='true'\n", True),
    ],
)
def test_settings_that_say_where_packages_are_are_told_from_others(settings: str, said: bool) -> None:
    assert names_an_index(settings) == said


@pytest.mark.parametrize(
    ("vendor", "kind", "gpu"),
    [("0x10de", "0x030200", True), ("0x10de", "0x020000", False), ("0x1d0f", "0x030000", False)],
)
def test_a_gpu_without_a_driver_counts_and_a_network_card_of_its_maker_does_not(
    tmp_path: Path, vendor: str, kind: str, gpu: bool
) -> None:
    device = tmp_path / "sys/bus/pci/devices/0000:00:1e.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text(f"{vendor}\n")
    (device / "class").write_text(f"{kind}\n")

    assert has_gpu(root=tmp_path) == gpu


def test_a_gpu_is_known_by_its_driver_where_pci_is_out_of_sight(tmp_path: Path) -> None:
    assert not has_gpu(root=tmp_path)
    (tmp_path / "proc/driver/nvidia/gpus/0000:00:1e.0").mkdir(parents=True)
    assert has_gpu(root=tmp_path)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<x>: Failed to "
            "establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/uv/\n"
            "ERROR: No matching distribution found for uv==0.13.8\n",
            "Failed to establish a new connection: [Errno -3] Temporary failure in name resolution",
        ),
        (
            "ERROR: Could not find a version of uv\nERROR: No matching distribution\n",
            "Could not find a version of uv",
        ),
        (
            "ERROR: Ignored the following versions that require a different python version: 13.1 Requires-Python "
            ">=3.11.5\nERROR: Could not find a version that satisfies the requirement a==13.1 (from versions: 1.0)\n"
            "ERROR: No matching distribution found for a==13.1\n",
            "Could not find a version that satisfies the requirement a==13.1",
        ),
        ("", "terminated"),
    ],
)
def test_what_pip_says_becomes_one_reason(said: str, why: str) -> None:
    assert reason(said) == why


def test_too_little_room_is_refused_before_the_download(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=300 * 10**6)
    monkeypatch.setattr(install_packages.shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr(install_packages.tempfile, "gettempdir", lambda: sys.prefix)

    with pytest.raises(SetupError) as caught:
        check_room(CPU)

    assert str(caught.value).startswith(f"got 300 MB free in {sys.prefix}; PyTorch for CPUs need 1100 MB there; free ")


def test_a_long_installation_is_not_silent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(install_packages, "LINE_EVERY_S", 0.05)
    program = "import sys, time; time.sleep(0.3); sys.exit('ERROR: no space')"

    done = install_packages.waited([sys.executable, "-c", program])

    assert "  still installing after 0 s" in capsys.readouterr().out
    assert (done.returncode, reason(done.stderr)) == (1, "no space")
