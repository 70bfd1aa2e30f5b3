"""nvidia-smi on nodes: what job files ask of it, answered from the library that stands in for the driver's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.catalog import instance_types
from holdfast.localcloud.gpus import compile_library, healthy

NODE = Path(__file__).parents[2] / "holdfast" / "localcloud" / "image" / "node"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvml")
    compile_library(folder / "libnvidia-ml.so.1", answers=str(folder / "gpus"))
    return folder


def smi(library: Path, *options: str) -> tuple[int, list[str]]:
    program = (
        f"import sys; sys.path.insert(0, {str(NODE)!r}); from standins.smi import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-IS", "-c", program, *options],
        env={**os.environ, "LD_LIBRARY_PATH": str(library)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_a_node_lists_the_gpus_of_its_type(library: Path) -> None:
    (library / "gpus").write_text(healthy(instance_types()["ml.p5.48xlarge"]))

    assert smi(library, "-L") == (
        0,
        [f"GPU {index}: NVIDIA H100 (UUID: GPU-00000000-0000-0000-0000-{index:012})" for index in range(8)],
    )
    code, table = smi(library)
    assert code == 0
    assert sum("NVIDIA H100" in line and "0MiB / 81559MiB" in line for line in table) == 8


def test_the_topology_has_the_links_between_gpus(library: Path) -> None:
    (library / "gpus").write_text(healthy(instance_types()["ml.p5.48xlarge"]))
    code, lines = smi(library, "topo", "-m")

    assert code == 0
    assert lines[1].split("\t") == ["GPU0", " X ", *["NV18"] * 7, "N/A", "N/A"]
    assert len(lines) == 9


def test_fields_are_asked_for_as_csv(library: Path) -> None:
    (library / "gpus").write_text(healthy(instance_types()["ml.g5.xlarge"]) + "gpu0.util=97,40\ngpu0.used_mib=20000\n")

    asked = "--query-gpu=index,name,memory.used,utilization.gpu"
    assert smi(library, asked, "--format=csv") == (
        0,
        ["index, name, memory.used [MiB], utilization.gpu [%]", "0, NVIDIA A10G, 20000 MiB, 97 %"],
    )
    assert smi(library, asked, "--format=csv,noheader,nounits", "-i", "0") == (0, ["0, NVIDIA A10G, 20000, 97"])
    assert smi(library, "--query-gpu=gpu_name", "--format=csv,noheader") == (0, ["NVIDIA A10G"])
    assert smi(library, "--query-gpu=mood", "--format=csv")[0] == 2
    assert smi(library, "-i", "7") == (6, ["No devices were found"])


def test_a_lost_gpu_a_missing_driver_and_what_is_not_answered_fail_as_the_real_program(library: Path) -> None:
    (library / "gpus").write_text(healthy(instance_types()["ml.p5.48xlarge"]) + "gpu3.result=15\n")
    assert smi(library)[0] == 15

    (library / "gpus").unlink()
    code, words = smi(library)
    assert (code, words[0][:21]) == (9, "NVIDIA-SMI has failed")

    (library / "gpus").write_text(healthy(instance_types()["ml.p5.48xlarge"]))
    code, words = smi(library, "--gpu-reset", "-i", "0")
    assert code != 0
    assert "does not support: --gpu-reset" in words[0]
