"""Text of a job file: what sbatch would refuse or ignore. Pure."""

import re
import shlex
from collections.abc import Iterator

_UTF8_MARK, _UTF16_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
_HERE_DOCUMENT = re.compile(r"(?<!<)<<-?\s*[\"']?([A-Za-z_]\w*)")


class JobTextError(ValueError):
    """Invalid job file, with reason and remedy."""


def check_text(content: bytes, *, name: str) -> None:
    """Check the text. Raises: JobTextError: not a job file; with the command that repairs it."""
    quoted = shlex.quote(name)
    if content.startswith(_UTF16_MARKS):
        raise JobTextError(f"{name} is UTF-16; make it UTF-8: iconv -f UTF-16 -t UTF-8 {quoted}")
    if content.startswith(_UTF8_MARK):
        raise JobTextError(f"{name} begins with a byte order mark; remove it: sed -i '1s/^\\xEF\\xBB\\xBF//' {quoted}")
    if b"\r\n" in content:
        raise JobTextError(f"{name} has line ends of DOS (CRLF), which sbatch refuses; do: sed -i 's/\\r$//' {quoted}")
    if b"\r" in content.partition(b"\n")[0]:
        raise JobTextError(f"{name} has line ends of old Macs (CR); do: sed -i 's/\\r/\\n/g' {quoted}")
    if not content.startswith(b"#!"):
        raise JobTextError(f"{name} does not begin with #!; a Slurm job file starts with a line such as #!/bin/bash")


def late_options(text: str) -> list[tuple[int, str]]:
    """(number, line) of ``#SBATCH`` lines after the first command, which sbatch ignores (sbatch(1))."""
    found, has_command = [], False
    for number, line in _outside_here_documents(text):
        if line.startswith("#SBATCH"):
            found += [(number, line.strip())] if has_command else []
        elif line.strip() and not line.lstrip().startswith("#"):
            has_command = True
    return found


def options_of(text: str) -> list[str]:
    """Words of the ``#SBATCH`` lines that sbatch reads."""
    words: list[str] = []
    for line in text.splitlines():
        if line.startswith("#SBATCH"):
            try:
                words += shlex.split(line.removeprefix("#SBATCH"), comments=True)
            except ValueError:  # a quote that is never closed
                continue
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return words


def value_of(words: list[str] | tuple[str, ...], *names: str) -> str | None:
    """Last value of an option, such as ``--export`` or ``-D``; None without it."""
    found = None
    for place, word in enumerate(words):
        for name in names:
            if word == name and place + 1 < len(words):
                found = words[place + 1]
            elif name.startswith("--") and word.startswith(f"{name}="):
                found = word.partition("=")[2]
            elif not name.startswith("--") and word.startswith(name) and word != name and not word.startswith("--"):
                found = word[len(name) :]
    return found


def _outside_here_documents(text: str) -> Iterator[tuple[int, str]]:
    until, lines = "", text.splitlines()
    for number, line in enumerate(lines, start=1):
        if until:
            until = "" if line.strip() == until else until
            continue
        yield number, line
        begins = None if line.lstrip().startswith("#") else _HERE_DOCUMENT.search(line)
        if begins and begins[1] in map(str.strip, lines[number:]):  # else a shift, as in $((1 << SIZE))
            until = begins[1]
