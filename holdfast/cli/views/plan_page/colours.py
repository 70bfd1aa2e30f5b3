"""Colours of the page, one meaning each, by day, by night and on paper: CSS variables, which plots name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.planner import ACCOUNTS


@dataclass(frozen=True, kw_only=True)
class Colour:
    variable: str
    """Of CSS, without the dashes."""
    light: str
    dark: str


TEXT = Colour(variable="text", light="#1d2125", dark="#e7e9eb")
DIM = Colour(variable="dim", light="#5d656d", dark="#a0a8b0")
LINE = Colour(variable="line", light="#dcdfe2", dark="#343a40")
HERE = Colour(variable="here", light="#c2185b", dark="#ff6fa5")
"""This cluster as it is planned."""
GOAL = Colour(variable="goal", light="#1d2125", dark="#e7e9eb")
"""What was asked for: target, deadline, budget."""

_STRATEGIES = (
    ("#8c4a1f", "#d99a6c"),
    ("#1f5fbf", "#74a9f5"),
    ("#0f8a7a", "#3fd0bb"),
    ("#6b3fa0", "#b794f0"),
    ("#7a7a00", "#cfcf4a"),
    ("#3c5a14", "#9cc455"),
)
"""Brown, blue, teal, violet and so on: none of them is a colour of an account."""

_ACCOUNTS: Mapping[str, tuple[str, str]] = {
    "useful": ("#cfe3c8", "#2f4a35"),
    "checkpoint": ("#f2c14e", "#b98a1c"),
    "detect": ("#7d1f1f", "#b04a4a"),
    "agree": ("#ef8a80", "#a84a4a"),
    "abort": ("#b5651d", "#c98a4a"),
    "rebuild": ("#f08a24", "#d9772b"),
    "copy": ("#ffd9b0", "#8f6a4a"),
    "redo": ("#e05fae", "#c25a99"),
    "replace": ("#d64545", "#e87a7a"),
    "idle": ("#b8bec4", "#5a6168"),
    "fewer": ("#8a9099", "#8a9099"),
}


def account(name: str) -> Colour:
    light, dark = _ACCOUNTS[name]
    return Colour(variable=f"a-{name}", light=light, dark=dark)


def strategy(names: Sequence[str], name: str) -> Colour:
    """Colour of a strategy; with spares the same one, dashed."""
    index = list(dict.fromkeys(each.partition("+")[0] for each in names)).index(name.partition("+")[0])
    light, dark = _STRATEGIES[index % len(_STRATEGIES)]
    return Colour(variable=f"s-{index}", light=light, dark=dark)


def every(names: Sequence[str]) -> tuple[Colour, ...]:
    accounts = tuple(account(name) for name in (*ACCOUNTS, "fewer"))
    return (TEXT, DIM, LINE, HERE, GOAL, *accounts, *dict.fromkeys(strategy(names, name) for name in names))


def stylesheet(colours: Sequence[Colour]) -> str:
    def variables(kind: str) -> str:
        return "".join(f"--{each.variable}:{getattr(each, kind)};" for each in colours)

    classes = "".join(
        f".k-{each.variable}{{background:var(--{each.variable});border-color:var(--{each.variable})}}"
        f".f-{each.variable}{{fill:var(--{each.variable})}}"
        for each in colours
    )
    return (
        f":root {{ {variables('light')} }}"
        f"@media (prefers-color-scheme: dark) {{ :root:not(.paper) {{ {variables('dark')} }} }}{classes}"
    )
