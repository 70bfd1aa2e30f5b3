"""Commands for token files. Results go to standard output, progress and errors to standard error."""

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from holdfast_runtime.data.documents import READERS, documents
from holdfast_runtime.data.format import NO_END, DataError, Header
from holdfast_runtime.data.tokenizers import BYTES, load_tokenizer
from holdfast_runtime.data.tokens import TokenFile, verify
from holdfast_runtime.data.writer import TokenWriter

PROGRESS_S = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = _parser().parse_args(arguments)
    try:
        {"build": _build, "inspect": _inspect, "verify": _verify}[parsed.command](parsed)
    except (DataError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m holdfast_runtime.data", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="make a token file from documents")
    build.add_argument("inputs", nargs="+", type=Path, help=f"files or folders: {', '.join(READERS)}")
    build.add_argument("--output", "-o", required=True, type=Path, help="the token file; replaced if it exists")
    build.add_argument("--tokenizer", default=BYTES, help="bytes, or an import path such as package.module:name")
    build.add_argument("--field", default="text", help="key or column that holds the text (default: text)")
    build.add_argument("--pattern", default="*", help="which files of a folder count, such as *.md (default: all)")
    build.add_argument("--dtype", choices=("int16", "uint16", "int32"), help="default: the narrowest that fits")
    build.add_argument("--quiet", action="store_true", help="no progress")
    inspect = commands.add_parser("inspect", help="say what token files hold")
    inspect.add_argument("files", nargs="+", type=Path)
    check = commands.add_parser("verify", help="read token files whole and compare them with their digests")
    check.add_argument("files", nargs="+", type=Path)
    check.add_argument("--quiet", action="store_true", help="no progress")
    return parser


class _Progress:
    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._started = self._next = time.monotonic()
        self._next += PROGRESS_S
        self._open = False

    def __call__(self, what: str, amount: int, unit: str = "bytes") -> None:
        now = time.monotonic()
        if self._quiet or now < self._next:
            return
        self._next = now + PROGRESS_S
        terminal = sys.stderr.isatty()
        rate = amount / (now - self._started) / 1e6
        text = f"{what}, {amount:,} {unit}, {rate:.1f} M{unit} per second"
        print(f"\r{text}\033[K" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)
        self._open = terminal

    def done(self) -> None:
        if self._open:
            print(file=sys.stderr)


def _build(parsed: argparse.Namespace) -> None:
    tokenizer = load_tokenizer(parsed.tokenizer)
    progress = _Progress(quiet=parsed.quiet)
    writer = TokenWriter(
        parsed.output,
        vocabulary_size=tokenizer.vocabulary_size,
        tokenizer=parsed.tokenizer,
        end_token=tokenizer.end_token,
        dtype=parsed.dtype,
    )
    try:
        with writer:
            for text in documents(parsed.inputs, field=parsed.field, pattern=parsed.pattern):
                writer.add(tokenizer.encode(text))
                progress(f"{writer.documents:,} documents", writer.tokens, "tokens")
    finally:
        progress.done()
    print(f"{parsed.output}: {writer.documents:,} documents, {writer.tokens:,} tokens")


def _inspect(parsed: argparse.Namespace) -> None:
    for path in parsed.files:
        file = TokenFile.open(path)
        lengths = np.diff(file.offsets)
        low, middle, high = (int(np.quantile(lengths, share, method="nearest")) for share in (0, 0.5, 1))
        facts = {
            **_facts(file.header),
            "document length": f"{low:,} to {high:,} tokens, median {middle:,}",
        }
        print(path)
        for name, value in facts.items():
            print(f"  {name:16} {value}")


def _facts(header: Header) -> dict[str, str]:
    return {
        "tokens": f"{header.tokens:,} as {header.dtype.name}",
        "documents": f"{header.documents:,}",
        "tokenizer": header.tokenizer,
        "vocabulary": f"{header.vocabulary_size:,}",
        "end token": "none" if header.end_token == NO_END else str(header.end_token),
        "bytes": f"{header.size:,}",
        "digest": header.digest.hex(),
    }


def _verify(parsed: argparse.Namespace) -> None:
    for path in parsed.files:
        progress = _Progress(quiet=parsed.quiet)
        try:
            header = verify(path, progress=partial(progress, str(path)))
        finally:
            progress.done()
        print(f"{path}: {header.documents:,} documents and {header.tokens:,} tokens are whole")
