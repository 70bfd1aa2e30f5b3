"""An editor's language server completes values in the environment files that ``holdfast init`` writes."""

import json
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from holdfast.catalog import Orchestrator
from holdfast.cli.deploying import find_node
from holdfast.cli.repository import Answers, repository_files, write_repository

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
SERVER = "yaml-language-server@2.0.0"


class LanguageServer:
    """YAML language server on standard input and output, as an editor starts it."""

    def __init__(self, program: Path, *, folder: Path) -> None:
        self._process = subprocess.Popen(
            [find_node(), program, "--stdio"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._numbers = count(1)
        self.request("initialize", processId=None, rootUri=folder.as_uri(), capabilities={})
        self.notify("initialized")

    def completions(self, file: Path, text: str) -> set[str]:
        """Labels that are offered at the end of a text, which the editor holds and has not saved."""
        document = {"uri": file.as_uri(), "languageId": "yaml", "version": 1, "text": text}
        self.notify("textDocument/didOpen", textDocument=document)
        lines = text.splitlines()
        place = {"line": len(lines) - 1, "character": len(lines[-1])}
        found = self.request("textDocument/completion", textDocument={"uri": file.as_uri()}, position=place)
        self.notify("textDocument/didClose", textDocument={"uri": file.as_uri()})
        return {item["label"].strip('"') for item in found["items"]}

    def request(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        self._send(id=number, method=method, params=params)
        while True:
            message = self._received()
            if message.get("id") == number and "method" not in message:
                return message["result"]
            if "id" in message:  # a question of the server, such as for settings: it has defaults
                self._send(id=message["id"], result=None)

    def notify(self, method: str, **params: Any) -> None:
        self._send(method=method, params=params)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _send(self, **message: Any) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _received(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        size = 0
        while (line := self._process.stdout.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            size = int(value) if name == b"Content-Length" else size
        message: dict[str, Any] = json.loads(self._process.stdout.read(size))
        return message


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("server")
    npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", SERVER]
    if subprocess.run(npm, cwd=folder, capture_output=True, timeout=300).returncode:
        pytest.skip("needs npm's registry")
    return folder / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"


@pytest.fixture
def server(program: Path, tmp_path: Path) -> Iterator[LanguageServer]:
    server = LanguageServer(program, folder=tmp_path)
    yield server
    server.close()


@pytest.mark.parametrize(
    ("orchestrator", "place", "typed", "offered"),
    [
        ("slurm", "region:", "region: ", {"us-west-2", "eu-north-1"}),
        ("slurm", "      instance_type:", "      instance_type: ", {"ml.p5.48xlarge", "ml.m5.4xlarge"}),
        ("slurm", "slurm:", "slurm:\n  config_strategy: ", {"Overwrite", "Managed", "Merge"}),
        ("eks", "  kubernetes_version:", "  kubernetes_version: ", {"1.33", "1.34"}),
        ("eks", "    - name: workers", "      auto_patch:\n        strategy: ", {"WhenIdle", "WhenAllIdle"}),
    ],
    ids=lambda value: str(value).strip() if isinstance(value, str) else "",
)
def test_an_editor_completes_a_value_in_an_environment_file_of_a_new_repository(
    orchestrator: Orchestrator, place: str, typed: str, offered: set[str], server: LanguageServer, tmp_path: Path
) -> None:
    write_repository(tmp_path, repository_files(Answers(name="lab", orchestrator=orchestrator), version="0.1.0"))
    file = tmp_path / "environments" / "lab.yaml"
    before, found, _ = file.read_text().partition(f"\n{place}")

    assert found
    assert server.completions(file, f"{before}\n{typed}") >= offered
