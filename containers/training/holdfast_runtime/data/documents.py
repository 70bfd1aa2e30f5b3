"""
Documents from files: plain text, JSON lines, Arrow and Parquet, by the name of the file.

Files are read as a stream in the order of the arguments, folders by name: the same input gives the same bytes.
"""

import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from holdfast_runtime.data.format import DataError


def documents(paths: Sequence[Path], *, field: str, pattern: str = "*") -> Iterator[str]:
    """
    The texts of files and folders.

    Args:
        field: key of the JSON objects, or column of the tables, that holds the text.
        pattern: which names of a folder count. Default: all that have a known kind

    Raises:
        DataError: a file is missing, of no known kind, not UTF-8, or lacks the field.
    """
    for path in paths:
        if path.is_dir():
            found = sorted(item for item in path.rglob(pattern) if item.is_file() and not item.name.startswith("."))
            known = [item for item in found if item.suffix in READERS]
            if not known:
                raise DataError(f"no file named {pattern} of a known kind ({', '.join(READERS)}) under {path}")
            for item in known:
                yield from READERS[item.suffix](item, field)
        elif path.suffix in READERS:
            yield from READERS[path.suffix](path, field)
        else:
            raise DataError(f"{path} is of no known kind; known are {', '.join(READERS)}")


def _text(path: Path, _: str) -> Iterator[str]:
    try:
        yield path.read_bytes().decode()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 at byte {error.start}; convert it, or leave it out") from error


def _json_lines(path: Path, field: str) -> Iterator[str]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _field(line, field, f"{path}:{number}")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


def _field(line: bytes, field: str, where: str) -> str:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise DataError(f"{where} is no JSON: {error}") from error
    text = value.get(field) if isinstance(value, dict) else None
    if not isinstance(text, str):
        keys = ", ".join(value) if isinstance(value, dict) else f"a {type(value).__name__}"
        raise DataError(f"{where} has no text in {field}; there is {keys or 'nothing'}; choose with --field")
    return text


def _arrow(path: Path, field: str) -> Iterator[str]:
    pyarrow = _pyarrow(path)
    with _opened(pyarrow, path) as source:
        try:
            reader = pyarrow.ipc.open_file(source)
            batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
        except pyarrow.ArrowInvalid:
            source.seek(0)
            batches = iter(_readable(pyarrow, path, lambda: pyarrow.ipc.open_stream(source)))
        yield from _column(batches, field, path)


def _parquet(path: Path, field: str) -> Iterator[str]:
    pyarrow = _pyarrow(path)
    parquet = importlib.import_module("pyarrow.parquet")
    with _opened(pyarrow, path) as source:
        file = _readable(pyarrow, path, lambda: parquet.ParquetFile(source))
        columns = [field] if field in file.schema_arrow.names else None
        yield from _column(file.iter_batches(columns=columns), field, path)


def _opened(pyarrow: Any, path: Path) -> Any:
    try:
        return pyarrow.memory_map(str(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _readable(pyarrow: Any, path: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except pyarrow.ArrowInvalid as error:
        raise DataError(f"{path} is damaged or of another kind than its name: {error}") from error


def _column(batches: Iterator[Any], field: str, path: Path) -> Iterator[str]:
    for batch in batches:
        names = batch.schema.names
        if field not in names:
            raise DataError(f"{path} has no column {field}; there is {', '.join(names)}; choose with --field")
        for row, value in enumerate(batch.column(field).to_pylist()):
            if not isinstance(value, str):
                raise DataError(f"{path} has no text in row {row} of {field}: {type(value).__name__}")
            yield value


def _pyarrow(path: Path) -> Any:
    try:
        importlib.import_module("pyarrow.ipc")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise DataError(f"reading {path} needs pyarrow, which is not installed; run pip install pyarrow") from error


Reader = Callable[[Path, str], Iterator[str]]

READERS: dict[str, Reader] = {
    ".txt": _text,
    ".md": _text,
    ".py": _text,
    ".jsonl": _json_lines,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".parquet": _parquet,
}
