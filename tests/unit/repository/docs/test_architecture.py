"""Tables of packages follow from the imports."""

from pathlib import Path

import pytest

import package_tables


def test_an_import_is_listed_and_one_that_follows_from_others_does_not(tmp_path: Path) -> None:
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

    tree = package_tables.read_tree(tmp_path)

    assert package_tables.room_arrows(tree, "holdfast.house") == {
        ("holdfast.house.floor", "holdfast.house.nails"): True,
        ("holdfast.house.roof", "holdfast.house.walls"): False,
        ("holdfast.house.walls", "holdfast.house.floor"): False,
    }
    assert tree.summary("holdfast.house") == "All of it"
    with pytest.raises(SystemExit, match=r"holdfast\.ground is on no floor of FLOORS"):
        package_tables.top_arrows(tree)


def test_no_arrow_leads_to_a_higher_floor() -> None:
    floor = {name: number for number, names in enumerate(package_tables.FLOORS.values()) for name in names}

    arrows = package_tables.top_arrows(package_tables.read_tree())

    assert [arrow for arrow in arrows if floor[arrow[0]] > floor[arrow[1]]] == []
