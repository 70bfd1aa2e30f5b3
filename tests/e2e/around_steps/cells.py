"""
The cells of the grid: form x layout x place of a kill, with and without a collective before the change. Data only.

Two layouts keep twins and redo nothing but the running step; FSDP2 has snapshots after each update ("fsdp"), after each
third one ("fsdp3"), of which the kills are two updates away, and of the start alone ("fsdp0").
"""

from collections.abc import Iterator
from dataclasses import dataclass

from forms.catalogue import FORMS
from forms.form import NAMED, NEITHER, REFUSED, SAME, THIN, Entry

LAYOUTS = ("replicas", "hsdp", "fsdp", "fsdp3", "fsdp0", "elastic")
RANKS = {"replicas": 2, "hsdp": 4, "fsdp": 2, "fsdp3": 2, "fsdp0": 2, "elastic": 3}
SNAPSHOTS = "03"
ALLOWED = {
    SAME: ("same",),
    NAMED: ("same", "named"),
    REFUSED: ("named",),
    NEITHER: ("same", "named", "SILENT", "other"),
}
CALM = "calm"
THIRD = ("backward", "after", "pause")
"""Places with snapshots after each third update."""
TWINS = ("backward", "after", "pause")
"""Places in HSDP of forms that are one habit in many variants."""
STATEMENT = r"|form\.after|statement|was left|inside the step"
"""Words of a message about code behind a collective that was left."""
PAUSES = ("pause", "mean")
"""After ``with step:``, and the survivors notice it between two steps: at the next one, or in a collective there."""
WARM = ("backward", "vote", "pause")
"""Places of FSDP2 at which the kill waits until the spare has tried a step; at others it mostly has not."""
START = ("pause",)
"""Place with a snapshot of the start alone: all steps are done again."""
ELASTIC = ("backward", "vote", "after", "between")
"""Places of a lost node in an elastic job."""


@dataclass(frozen=True)
class Cell:
    """One job with one kill."""

    form: str
    layout: str
    place: str
    """calm: nothing is killed."""
    collective: bool = False

    @property
    def id(self) -> str:
        return f"{self.form}/{self.layout}/{self.place}{'+collective' if self.collective else ''}"

    @property
    def entry(self) -> Entry:
        return FORMS[self.form]

    @property
    def calm(self) -> "Cell":
        """The job whose bits this one has to have."""
        return Cell(self.form, self.layout.rstrip(SNAPSHOTS), CALM)

    @property
    def verdict(self) -> str:
        """What is expected."""
        entry = self.entry
        if (self.place == "mean" or self.collective) and entry.verdict == SAME:
            return NAMED  # what stands behind a collective that was left may end the job, which names the statement
        return entry.by_place.get(self.place) or entry.by_layout.get(self.layout.rstrip(SNAPSHOTS)) or entry.verdict

    @property
    def words(self) -> str:
        """What a message has to have one of."""
        return self.entry.words + (STATEMENT if self.collective or self.place in ("evaluation", "mean") else "")

    @property
    def allowed(self) -> tuple[str, ...]:
        return ALLOWED[self.verdict]

    @property
    def rank(self) -> int:
        """To be killed: not always the same one."""
        return 0 if self.place in ("vote", "after") else 1

    @property
    def step(self) -> int:
        """
        In which the kill is.

        With a snapshot after each third update two updates are done again: a step before its update is the one that
        follows five finished ones.
        """
        if self.place == "evaluation":
            return 7
        if self.layout == "fsdp3":
            return 4 if self.place in ("after", "between", *PAUSES) else 5
        return 6


def cells() -> Iterator[Cell]:
    """All of them."""
    for name, entry in FORMS.items():
        for layout in LAYOUTS:
            if reason(entry, layout):
                continue
            if entry.verdict == REFUSED:
                yield Cell(name, layout, CALM)
                continue
            for place in places(entry, layout):
                yield Cell(name, layout, place)
                if entry.changes_after and place == "after":  # elsewhere the loss is noticed in other collectives
                    yield Cell(name, layout, place, collective=True)


def reason(entry: Entry, layout: str) -> str:
    """Why a form has no cells in a layout; empty if it has."""
    if layout == "elastic" and not entry.elastic:
        return "sizes change nothing of it: its fsdp cells count"
    return entry.without.get(layout.rstrip(SNAPSHOTS), "")


def places(entry: Entry, layout: str) -> tuple[str, ...]:
    """Places of kills of a form in a layout."""
    if layout == "elastic":
        return ELASTIC
    if layout == "fsdp0":
        return START
    if layout == "fsdp3":
        return ("after",) if entry.places == THIN else tuple(place for place in entry.places if place in THIRD)
    if layout == "hsdp" and entry.places == THIN:
        return TWINS
    return entry.places + (("mean",) if entry.mean else ())
