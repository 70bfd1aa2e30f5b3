"""What the kernel shows of a process: an accelerator that it has open."""

from pathlib import Path

import pytest

from holdfast_runtime.launcher.ranks import holds_device


@pytest.mark.parametrize(
    ("opened", "holds"),
    [("/dev/nvidia0", True), ("/dev/neuron3", True), ("/dev/null", False), ("/fsx/nvidia", False)],
)
def test_an_accelerator_that_is_open_is_seen(tmp_path: Path, opened: str, holds: bool) -> None:
    folder = tmp_path / "7" / "fd"
    folder.mkdir(parents=True)
    (folder / "5").symlink_to(opened)

    assert holds_device(7, proc=tmp_path) is holds
    assert holds_device(8, proc=tmp_path)
