"""Token files: written whole or not at all, opened without being read, refused when they are not what they say."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_runtime.data import NO_END, DataError, TokenFile, TokenWriter, verify


def write(path: Path, documents: list[list[int]], *, vocabulary_size: int = 100, end_token: int = NO_END) -> Path:
    with TokenWriter(path, vocabulary_size=vocabulary_size, tokenizer="test", end_token=end_token) as writer:
        for document in documents:
            writer.add(document)
    return path


@given(
    documents=st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=20), min_size=1, max_size=10),
    vocabulary_size=st.sampled_from([100, 32768, 32769, 65536, 65537, 2**31]),
)
def test_what_is_written_is_read_in_the_narrowest_type(
    documents: list[list[int]], vocabulary_size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("tokens") / "a.tokens"
    file = TokenFile.open(write(path, documents, vocabulary_size=vocabulary_size))
    assert [file.document(number).tolist() for number in range(len(documents))] == documents
    expected = "int16" if vocabulary_size <= 32768 else "uint16" if vocabulary_size <= 65536 else "int32"
    assert file.tokens.dtype == np.dtype(expected)
    assert verify(path).tokens == sum(map(len, documents))


def test_the_end_token_belongs_to_its_document(tmp_path: Path) -> None:
    file = TokenFile.open(write(tmp_path / "a.tokens", [[1, 2], [], [3]], end_token=99))
    assert file.tokens.tolist() == [1, 2, 99, 3, 99]
    assert file.offsets.tolist() == [0, 3, 5]


def test_the_same_documents_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (write(tmp_path / name, [[1, 2, 3], [4]]) for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("cut", [1, 8, 200])
def test_a_truncated_file_is_refused_when_it_is_opened(tmp_path: Path, cut: int) -> None:
    path = write(tmp_path / "a.tokens", [list(range(100))])
    os.truncate(path, path.stat().st_size - cut)
    with pytest.raises(DataError, match=r"is truncated: it has \d+ bytes, its header requires"):
        TokenFile.open(path)


@pytest.mark.parametrize(
    ("place", "message"), [(0, "is no token file"), (20, "header of .* is damaged"), (254, "header of .* is damaged")]
)
def test_a_damaged_header_is_refused_when_it_is_opened(tmp_path: Path, place: int, message: str) -> None:
    path = write(tmp_path / "a.tokens", [[1, 2, 3]])
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=message):
        TokenFile.open(path)


@pytest.mark.parametrize("place", [256, 300, -9])
def test_verifying_finds_any_changed_byte(tmp_path: Path, place: int) -> None:
    path = write(tmp_path / "a.tokens", [list(range(50)), [7, 8]])
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match="do not match its digest"):
        verify(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "no token file"), (b"HFTOKENS", "ends inside its header"), (b"text", "no token file")],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.tokens"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        TokenFile.open(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        TokenFile.open(tmp_path / "a.tokens")


def test_a_token_outside_the_vocabulary_is_refused_and_the_old_file_stays(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tokens", [[1]])
    before = path.read_bytes()
    with pytest.raises(DataError, match="document 1 has token 100, and the tokens of test are 0 to 99"):
        write(path, [[1, 2], [100]])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_type_too_narrow_for_the_vocabulary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="int16 does not hold 40000 tokens; use uint16"):
        TokenWriter(tmp_path / "a", vocabulary_size=40000, tokenizer="test", end_token=NO_END, dtype="int16")


def test_a_file_without_documents_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no documents with text"):
        write(tmp_path / "a.tokens", [[]])
    assert not list(tmp_path.iterdir())


WRITER = """
import sys
from holdfast_runtime.data import NO_END, TokenWriter
with TokenWriter(sys.argv[1], vocabulary_size=100, tokenizer="test", end_token=NO_END) as writer:
    writer.add([1, 2, 3])
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_two_builds_of_a_file_exclude_each_other_and_a_killed_one_is_in_nobodys_way(tmp_path: Path) -> None:
    path = tmp_path / "a.tokens"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "writing\n"
            with pytest.raises(DataError, match="another build is writing"):
                write(path, [[1]])
        finally:
            other.send_signal(signal.SIGKILL)
            other.wait(timeout=10)
    assert not path.exists()
    write(path, [[4, 5]])
    assert list(tmp_path.iterdir()) == [path]
    assert TokenFile.open(path).tokens.tolist() == [4, 5]
