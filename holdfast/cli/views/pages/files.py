"""Files of pages, and pages that are one file: what a browser runs and shows is in them, and it may load nothing."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

MARK = "<!doctype html>\n<!-- written by holdfast -->\n"
"""Beginning of a page; other files are left alone."""
UPLOT = ("assets/uplot/uPlot.iife.min.js", "assets/uplot/uPlot.min.css")
_KINDS = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, kw_only=True)
class PageFile:
    kind: str
    """Media type."""
    content: bytes


def page_file(package: str, path: str) -> PageFile:
    """Read a file of a package."""
    return PageFile(kind=_KINDS[Path(path).suffix], content=files(package).joinpath(path).read_bytes())


def plotting_files() -> dict[str, PageFile]:
    """Files that draw plots, by their names in a page: uPlot, its style, and what is drawn with it."""
    script, style = UPLOT
    return {
        "uplot.js": page_file(__package__, script),
        "uplot.css": page_file(__package__, style),
        "plots.js": page_file(__package__, "assets/plots.js"),
    }


def document(title: str, body: str, *, styles: Sequence[str], scripts: Sequence[str], data: Mapping[str, Any]) -> str:
    """
    Return a page that is one file; equal arguments give equal pages.

    Args:
        title: Text, not HTML.
        body: HTML without a text of others.
        styles: CSS.
        scripts: JavaScript, run in this order after the body was read.
        data: JSON by the id of its element.
    """
    style, script = "\n".join(styles), "\n".join(scripts)
    allowed = f"style-src {_digest(style)}; script-src {_digest(script)}"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    values = "".join(
        f'<script type="application/json" id="{name}">{_embedded(value)}</script>\n' for name, value in data.items()
    )
    return f"""{MARK}<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
{body}
{values}<script>{script}</script>
</body>
</html>
"""


def is_page(path: Path) -> bool:
    """Return True for a page that was written here."""
    with path.open("rb") as file:
        return file.read(len(MARK)) == MARK.encode()


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _embedded(value: Any) -> str:
    """JSON that ends no element: no text in it has an angle bracket."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
