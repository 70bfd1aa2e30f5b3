"""The commands: build from text, JSON lines and Arrow, inspect, verify; refusals say what to do."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast_runtime.data import DataError, TokenFile, load_tokenizer, main


def build(tmp_path: Path, *arguments: str) -> TokenFile:
    output = tmp_path / "out.tokens"
    assert main(["build", *arguments, "--output", str(output), "--quiet"]) == 0
    return TokenFile.open(output)


def texts(file: TokenFile) -> list[str]:
    documents = (file.document(number) for number in range(file.header.documents))
    return [bytes(document[:-1].astype("u1")).decode() for document in documents]


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 1
    return capsys.readouterr().err


def test_a_folder_of_text_is_built_in_the_order_of_names(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "b.txt").write_text("second")
    (source / "a.txt").write_text("first \u00e9\n")
    (source / "deep" / "c.txt").write_text("third")
    (source / "empty.txt").write_text("")
    (source / "image.png").write_bytes(b"\x89")
    file = build(tmp_path, str(source))
    assert texts(file) == ["first \u00e9\n", "second", "third"]
    assert file.header.vocabulary_size == 257
    assert file.tokens[-1] == 256


def test_json_lines_are_built_from_the_chosen_field(tmp_path: Path) -> None:
    source = tmp_path / "source.jsonl"
    source.write_text("".join(json.dumps({"body": text, "id": 1}) + "\n\n" for text in ("one", "two")))
    assert texts(build(tmp_path, str(source), "--field", "body")) == ["one", "two"]


@pytest.mark.parametrize("kind", ["arrow", "feather", "stream.arrow", "parquet"])
def test_arrow_and_parquet_are_built_from_the_chosen_column(tmp_path: Path, kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    importlib.import_module("pyarrow.ipc")
    source = tmp_path / f"source.{kind}"
    table = pyarrow.table({"text": ["one", "two", "three"], "id": [1, 2, 3]})
    if kind == "parquet":
        importlib.import_module("pyarrow.parquet").write_table(table, source)
    elif kind == "feather":
        importlib.import_module("pyarrow.feather").write_feather(table, str(source))
    else:
        make = pyarrow.ipc.new_stream if kind.startswith("stream") else pyarrow.ipc.new_file
        with make(str(source), table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    assert texts(build(tmp_path, str(source))) == ["one", "two", "three"]


def test_arrow_that_is_damaged_or_lacks_the_column_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    importlib.import_module("pyarrow.ipc")
    source = tmp_path / "a.arrow"
    source.write_bytes(b"this is not arrow at all")
    arguments = ("build", str(source), "-o", str(tmp_path / "out"))
    assert "is damaged or of another kind" in refusal(capsys, *arguments)
    table = pyarrow.table({"id": [1], "text": pyarrow.array([None], pyarrow.string())})
    with pyarrow.ipc.new_file(str(source), table.schema) as writer:
        writer.write_table(table)
    assert "has no column body; there is id, text; choose with --field" in refusal(
        capsys, *arguments, "--field", "body"
    )
    assert "has no text in row 0 of text" in refusal(capsys, *arguments)
    (tmp_path / "b.parquet").write_bytes(b"no")
    assert "is damaged" in refusal(capsys, "build", str(tmp_path / "b.parquet"), "-o", str(tmp_path / "out"))


def test_arrow_without_pyarrow_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.ipc", None)
    (tmp_path / "a.arrow").write_bytes(b"")
    error = refusal(capsys, "build", str(tmp_path / "a.arrow"), "-o", str(tmp_path / "out"))
    assert "needs pyarrow, which is not installed; run pip install pyarrow" in error


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"ok\xff", "a.txt is not UTF-8 at byte 2; convert it, or leave it out"),
        ("a.jsonl", b'{"text": "x"}\n{"text": 1}\n', "a.jsonl:2 has no text in text; there is text"),
        ("a.jsonl", b'{"body": "x"}', "a.jsonl:1 has no text in text; there is body; choose with --field"),
        ("a.jsonl", b"{", "a.jsonl:1 is no JSON"),
        ("a.jsonl", b"[]", "there is a list"),
        ("a.doc", b"", "is of no known kind; known are .txt"),
        ("a.txt", b"", "has no documents with text"),
    ],
)
def test_input_that_cannot_be_used_is_refused_and_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert message in refusal(capsys, "build", str(tmp_path / name), "-o", str(tmp_path / "out"), "--quiet")
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_missing_input_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.txt", "a.jsonl"):
        assert "cannot be read: No such file" in refusal(
            capsys, "build", str(tmp_path / name), "-o", str(tmp_path / "o")
        )
    (tmp_path / "folder").mkdir()
    assert "no file named *.md" in refusal(
        capsys, "build", str(tmp_path / "folder"), "--pattern", "*.md", "-o", str(tmp_path / "o")
    )


TOKENIZER = """
class Words:
    vocabulary_size = 70000
    end_token = -1
    def encode(self, text):
        return [len(word) for word in text.split()]
ready = Words()
def make():
    return Words()
class Half:
    def encode(self, text):
        return []
"""


@pytest.mark.parametrize("name", ["Words", "ready", "make"])
def test_a_tokenizer_comes_by_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module = f"words_{name}"
    (tmp_path / f"{module}.py").write_text(TOKENIZER)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "a.txt").write_text("to be or not")
    file = build(tmp_path, str(tmp_path / "a.txt"), "--tokenizer", f"{module}:{name}")
    assert file.tokens.tolist() == [2, 2, 2, 3]
    assert file.tokens.dtype.name == "int32"
    assert file.header.tokenizer == f"{module}:{name}"
    with pytest.raises(DataError, match="needs encode"):
        load_tokenizer(f"{module}:Half")


@pytest.mark.parametrize("name", ["words", "no_such_module:x", "json:no_such_name", ":x"])
def test_an_unknown_tokenizer_is_refused(name: str) -> None:
    with pytest.raises(DataError, match=r"unknown tokenizer|cannot be imported"):
        load_tokenizer(name)


def test_inspect_and_verify_say_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("four")
    (tmp_path / "b.txt").write_text("more words")
    file = build(tmp_path, str(tmp_path / "a.txt"), str(tmp_path / "b.txt"))
    capsys.readouterr()
    assert main(["inspect", str(file.path)]) == 0
    said = capsys.readouterr().out
    for part in ("16 as int16", "tokenizer        bytes", "end token        256", "5 to 11 tokens"):
        assert part in said
    assert main(["verify", str(file.path)]) == 0
    assert "2 documents and 16 tokens are whole" in capsys.readouterr().out
    data = bytearray(file.path.read_bytes())
    data[260] ^= 1
    file.path.write_bytes(data)
    assert "do not match its digest; copy or build the file again" in refusal(capsys, "verify", str(file.path))


def test_the_commands_run_without_torch_and_report_progress(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "x" * 2000}) + "\n")
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import holdfast_runtime.data.commands as commands\n"
        "commands.PROGRESS_S = 0\n"
        "sys.exit(commands.main())"
    )
    arguments = ["build", str(tmp_path / "a.jsonl"), "-o", str(tmp_path / "out")]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("out: 1 documents, 2,001 tokens\n")
    assert "1 documents, 2,001 tokens," in done.stderr


def test_the_module_is_a_program(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast_runtime.data", "inspect", str(tmp_path / "none")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot be read" in done.stderr
