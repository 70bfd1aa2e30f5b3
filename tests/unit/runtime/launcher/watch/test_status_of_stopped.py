"""What ``holdfast-run status`` says of a launcher that is there and does not answer, and of one that ends meanwhile."""

import socket
import threading
from pathlib import Path

import pytest

from holdfast_runtime.launcher.node import print_status


def said(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        print_status(["--socket", str(path)])
    assert ended.value.code == 1
    return capsys.readouterr().err


def test_one_that_is_stopped_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("holdfast_runtime.launcher.node.report.ANSWER_S", 0.05)
    with socket.socket(socket.AF_UNIX) as door:  # the kernel takes the connection for a process that is stopped
        door.bind(str(tmp_path / "it"))
        door.listen()

        assert "did not answer within 0.05 s: it is stopped (SIGSTOP) or hangs" in said(tmp_path / "it", capsys)


def test_one_that_ends_while_it_answers_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "it"))
        door.listen()
        threading.Thread(target=lambda: door.accept()[0].close()).start()

        assert "(it ended while it answered" in said(tmp_path / "it", capsys)
