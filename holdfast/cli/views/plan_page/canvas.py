"""
Matplotlib figures as SVG inside a page: no files, no addresses, no duplicate ids.

Text stays text, in the font of the page: sharp and searchable.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

from holdfast.cli.views.plan_page.colours import DIM, LINE, Colour, in_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_IN, HEIGHT_IN = 4.6, 3.1
"""Small on purpose: on a phone the plot is as wide as the page, and its letters keep their size."""

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "holdfast",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "text.color": DIM.stand_in,
    "axes.labelcolor": DIM.stand_in,
    "axes.edgecolor": LINE.stand_in,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": LINE.stand_in,
    "grid.linewidth": 0.6,
    "xtick.color": LINE.stand_in,
    "ytick.color": LINE.stand_in,
    "xtick.labelcolor": DIM.stand_in,
    "ytick.labelcolor": DIM.stand_in,
    "lines.linewidth": 1.6,
    "text.parse_math": False,
}


class Plot:
    """Figure with one pair of axes; ``svg`` is set when the block ends."""

    def __init__(self, figure: "Figure", axes: "Axes") -> None:
        self.figure = figure
        self.axes = axes
        self.svg = ""


@contextmanager
def plot(name: str, title: str, colours: Sequence[Colour], *, height_in: float = HEIGHT_IN) -> Iterator[Plot]:
    # Here and not above: it takes half a second, and most commands draw nothing.
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        drawn = Plot(figure, figure.add_subplot())
        figure.patch.set_visible(False)
        drawn.axes.patch.set_visible(False)
        yield drawn
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=nothing)
    drawn.svg = in_page(_inline(buffer.getvalue(), name, title), colours)


def _inline(document: str, name: str, title: str) -> str:
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: inherit", svg)
    svg = re.sub(r"(font: (?:\w+ )*[\d.]+px) [^;\"]*", r"\1 inherit", svg)
    svg = svg.replace("xlink:href", "href")
    used = set(re.findall(r"[\"(]#([\w.-]+)[\")]", svg))
    svg = re.sub(r' id="([\w.-]+)"', lambda found: found.group(0) if found.group(1) in used else "", svg)
    for each in sorted(used):
        svg = svg.replace(f'"{each}"', f'"{name}-{each}"').replace(f"#{each}", f"#{name}-{each}")
    box = re.search(r'viewBox="([^"]*)"', svg)
    head = (
        f'<svg viewBox="{box.group(1) if box else ""}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>'
    )
    svg = head + svg[svg.index(">") + 1 :]
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)).strip()
