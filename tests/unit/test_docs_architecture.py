"""The pictures in docs/concepts/architecture.md and docs/reference/rooms.md are those of the imports."""

import functools
from pathlib import Path

import pytest

import draw_architecture as drawing

ROOT = Path(__file__).parents[2]


@functools.cache
def repository() -> drawing.Tree:
    return drawing.read_tree()


def test_the_picture_of_the_floors_is_that_of_the_imports() -> None:
    page = (ROOT / "docs" / "concepts" / "architecture.md").read_text()

    assert page.count(drawing.BEGIN) == page.count(drawing.END) == 1
    assert page == drawing.architecture_page(repository(), page), "imports changed: `make schema` draws the page again"


def test_the_pictures_of_the_rooms_are_those_of_the_imports() -> None:
    page = (ROOT / "docs" / "reference" / "rooms.md").read_text()

    assert page == drawing.rooms_page(repository()), "imports or docstrings changed: `make schema` draws the page again"


def test_an_import_appears_as_an_arrow_and_one_that_follows_from_others_does_not(tmp_path: Path) -> None:
    made = {
        "app.py": "",
        "holdfast/ground/__init__.py": "",
        "holdfast/house/__init__.py": '"""All of it. More."""\nfrom holdfast.house.roof import tile\n',
        "holdfast/house/roof/__init__.py": "from holdfast.house import walls\nfrom holdfast.house.floor import plank\n",
        "holdfast/house/walls/__init__.py": "from ..floor import plank\n",
        "holdfast/house/floor/__init__.py": "def lay():\n    import holdfast.house.nails\n",
        "holdfast/house/nails.py": "from holdfast import ground\n",
    }
    for name, text in made.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    tree = drawing.read_tree(tmp_path)

    assert drawing.room_arrows(tree, "holdfast.house") == {
        ("holdfast.house.floor", "holdfast.house.nails"): True,
        ("holdfast.house.roof", "holdfast.house.walls"): False,
        ("holdfast.house.walls", "holdfast.house.floor"): False,
    }
    assert tree.summary("holdfast.house") == "All of it"
    with pytest.raises(SystemExit, match=r"holdfast\.ground is on no floor of FLOORS"):
        drawing.top_arrows(tree)


def test_no_arrow_leads_to_a_higher_floor() -> None:
    floor = {name: number for number, names in enumerate(drawing.FLOORS.values()) for name in names}

    assert [arrow for arrow in drawing.top_arrows(repository()) if floor[arrow[0]] > floor[arrow[1]]] == []
