"""Colours of the page by day, by night and on paper."""

LIGHT = {
    "text": "#1d2125", "dim": "#5d656d", "line": "#dcdfe2", "seen": "#b3261e", "stop": "#e8871e", "weak": "#8fb4de",
    "strong": "#2e7d32", "still": "#e8871e", "rest": "#b8bec4", "j0": "#1f5fbf", "j1": "#6b3fa0", "j2": "#0f8a7a",
    "j3": "#8c4a1f", "j4": "#7a7a00", "j5": "#c2185b",
}  # fmt: skip
DARK = {
    "text": "#e7e9eb", "dim": "#a0a8b0", "line": "#343a40", "seen": "#f0776c", "stop": "#f0a04b", "weak": "#4f78a8",
    "strong": "#7bc67e", "still": "#f0a04b", "rest": "#5a6168", "j0": "#74a9f5", "j1": "#b794f0", "j2": "#3fd0bb",
    "j3": "#d99a6c", "j4": "#cfcf4a", "j5": "#ff6fa5",
}  # fmt: skip


def picture_colours() -> str:
    cards = ":root { --card: #fff; } @media (prefers-color-scheme: dark) { :root { --card: #1d2125; } }"
    return f"{cards}{colours()}{DRAWN}"


def colours() -> str:
    def variables(of: dict[str, str]) -> str:
        return "".join(f"--{name}:{value};" for name, value in of.items())

    jobs = "".join(
        f".rate.j{at}{{stroke:var(--j{at})}} .area.j{at}{{fill:var(--j{at})}} .key i.j{at}{{background:var(--j{at})}}"
        for at in range(6)
    )
    bars = "".join(
        f".bar.{kind}{{fill:var(--{kind})}} .key i.{kind}{{background:var(--{kind})}}"
        for kind in ("seen", "stop", "weak", "rest")
    )
    return (
        f":root {{ {variables(LIGHT)} }}"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}"
        f"@media print {{ :root {{ {variables(LIGHT)} }} }}{jobs}{bars}"
    )


DRAWN = """
svg text { font-size: 11px; fill: var(--text); } svg .dim { font-size: 11px; fill: var(--dim); }
svg .mid { text-anchor: middle; } svg .end { text-anchor: end; }
svg .rule { stroke: var(--line); stroke-width: .7; } svg .axis { stroke: var(--dim); stroke-width: .8; }
svg .rate { fill: none; stroke-width: 1.4; } svg .area { opacity: .14; }
svg .still { fill: var(--still); opacity: .28; }
svg .sign { stroke: var(--text); stroke-width: 1.5; } svg .strong { fill: var(--strong); stroke: var(--card); }
svg .bar.open { fill: none; stroke: var(--seen); stroke-width: 1.2; stroke-dasharray: 4 3; }
"""
"""What is drawn."""

OWN = (
    DRAWN
    + """
svg { max-width: none; }
.key i.strong { background: var(--strong); border-radius: 50%; } .key i.still { background: var(--still); opacity: .4; }
.key i.open { border: 1.5px dashed var(--seen); background: none; }
.narrow { display: none; }
details { border-top: 1px solid var(--line); padding: .5rem 0; } details details { border: 0; padding: .3rem 0 0; }
summary { cursor: pointer; overflow-wrap: anywhere; } summary b { margin-right: .5em; }
.one { white-space: nowrap; }
.state { font-size: .8rem; padding: 0 .45em; border: 1px solid var(--dim); border-radius: 1em; white-space: nowrap; }
.state.bad { border-color: var(--seen); color: var(--seen); }
.state.good { border-color: var(--strong); color: var(--strong); }
.body { padding: .6rem 0 .4rem 1.1rem; } .body dl { font-size: .9rem; } dd { overflow-wrap: anywhere; }
.body dl { grid-template-columns: 7rem 1fr; }
ol.steps { margin: .6rem 0; padding: .5rem 0; list-style: none; font-size: .9rem;
  border: solid var(--line); border-width: 1px 0; }
ol.steps span { display: inline-block; width: 7rem; padding-right: 1rem; color: var(--dim);
  font-variant-numeric: tabular-nums; }
ol.lines { margin: .3rem 0 0; padding: 0; list-style: none; font: .8rem/1.45 ui-monospace, monospace; }
ol.lines li { overflow-wrap: anywhere; white-space: pre-wrap; padding: .1rem 0; }
ol.lines span { color: var(--dim); margin-right: .8em; }
@media screen and (max-width: 40rem) { .wide { display: none; } .narrow { display: block; } .body { padding-left: 0; }
  .body dd { margin: 0; } .body dl, ol.steps span { grid-template-columns: 5.5rem 1fr; width: 5.5rem; }
  .body dl { width: auto; } }
@media print {
  details::details-content { content-visibility: visible; block-size: auto; } summary { list-style: none; }
  details { break-inside: avoid-page; }
}
"""
)
