"""Pages in Markdown as plain text for a terminal."""

import re


def as_plain_text(markdown: str) -> str:
    """Return a page without its marks: code blocks are indented, headings and links keep their words."""
    parts = re.split(r"^```\w*\n", markdown, flags=re.MULTILINE)
    return "".join(_indented(part) if number % 2 else _prose(part) for number, part in enumerate(parts)).strip()


def _indented(block: str) -> str:
    return re.sub(r"^(?=.)", "    ", block, flags=re.MULTILINE)


def _prose(text: str) -> str:
    text = re.sub(r"^#+ ", "", text, flags=re.MULTILINE).replace("**", "")
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)
